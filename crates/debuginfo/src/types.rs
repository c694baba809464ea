//! Structures, unions and arrays, whatever format of debug information has them.

use crate::Result;
use std::borrow::Cow;
use std::collections::HashSet;

/// Largest nesting of types; more is an error in the debug information.
const MAX_DEPTH: u32 = 32;

/// Number of a type in its source, such as its offset in `.debug_info`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeId(pub usize);

/// A type.
#[derive(Debug, Clone)]
pub struct DataType<'a> {
    /// Name without `struct`, `union` or `enum`; `None` if it is anonymous.
    pub name: Option<Cow<'a, str>>,
    /// Size in bytes, if the debug information says it.
    pub bytes: Option<u64>,
    /// Form.
    pub kind: TypeKind,
}

/// Form of a type. A part of it without a type is `void`, or unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypeKind {
    /// `typedef`, or a qualifier such as `const`.
    Alias(Option<TypeId>),
    /// `struct`; [`TypeSource::members`] lists its members.
    Structure,
    /// `union`; [`TypeSource::members`] lists its members.
    Union,
    /// `enum`.
    Enumeration,
    /// Array.
    Array {
        /// Type of an element.
        element: Option<TypeId>,
        /// Lengths, outermost first; empty if any is unknown.
        counts: Vec<u64>,
    },
    /// Pointer.
    Pointer(Option<TypeId>),
    /// Anything else, such as an integer.
    Other,
}

/// Member of a structure or union.
#[derive(Debug, Clone)]
pub struct Member<'a> {
    /// Name; `None` if it is anonymous, so that its members count as members of the structure.
    pub name: Option<Cow<'a, str>>,
    /// Type.
    pub kind: Option<TypeId>,
    /// Offset in bytes; of a bit field, the byte in which it begins.
    pub offset: u64,
}

/// The types of a kernel or program.
pub trait TypeSource {
    /// Returns the structure or union of a name.
    fn structure(&self, name: &str) -> Option<TypeId>;

    /// Returns the type of the variable at an address.
    fn variable(&self, address: u64) -> Option<TypeId>;

    /// Returns the value of an enumerator.
    fn enumerator(&self, name: &str) -> Option<u64>;

    /// Returns a type.
    ///
    /// # Errors
    /// Damaged debug information.
    fn data_type(&self, kind: TypeId) -> Result<DataType<'_>>;

    /// Returns the members of a structure or union, in their order.
    ///
    /// # Errors
    /// Damaged debug information.
    fn members(&self, kind: TypeId) -> Result<Vec<Member<'_>>>;

    /// Strips `typedef` and qualifiers from a type; `None` for `void`.
    ///
    /// # Errors
    /// Damaged debug information.
    fn strip_qualifiers(&self, mut kind: TypeId) -> Result<Option<(TypeId, DataType<'_>)>> {
        for _ in 0..MAX_DEPTH {
            match self.data_type(kind)? {
                DataType { kind: TypeKind::Alias(Some(next)), .. } => kind = next,
                DataType { kind: TypeKind::Alias(None), .. } => return Ok(None),
                plain => return Ok(Some((kind, plain))),
            }
        }
        Ok(None)
    }

    /// Returns the size of a type in bytes; `None` if unknown.
    ///
    /// # Errors
    /// Damaged debug information.
    fn bytes(&self, mut kind: TypeId) -> Result<Option<u64>> {
        let mut times = 1u64;
        for _ in 0..MAX_DEPTH {
            let Some((_, plain)) = self.strip_qualifiers(kind)? else { break };
            let bytes = match (plain.bytes, plain.kind) {
                (Some(bytes), _) => bytes,
                (None, TypeKind::Pointer(_)) => 8,
                (None, TypeKind::Array { element: Some(element), counts }) if !counts.is_empty() => {
                    times = counts.iter().fold(times, |all, count| all.saturating_mul(*count));
                    kind = element;
                    continue;
                }
                _ => break,
            };
            return Ok(Some(bytes.saturating_mul(times)));
        }
        Ok(None)
    }

    /// Returns a type's name in C, such as `struct tcp_sock`.
    ///
    /// # Errors
    /// Damaged debug information.
    fn type_name(&self, kind: TypeId) -> Result<String> {
        name_within(self, kind, MAX_DEPTH)
    }

    /// Returns the path of the member at an offset, such as `sk.sk_lock.slock`.
    ///
    /// # Errors
    /// Damaged debug information.
    fn field(&self, mut kind: TypeId, mut offset: u64) -> Result<String> {
        let mut path = String::new();
        for _ in 0..MAX_DEPTH {
            let Some((at, plain)) = self.strip_qualifiers(kind)? else { break };
            match plain.kind {
                TypeKind::Structure | TypeKind::Union => {
                    let mut inside = None;
                    for Member { name, kind, offset: from } in self.members(at)? {
                        let Some(of) = kind.filter(|_| from <= offset) else { continue };
                        // An array without a length extends to the end.
                        if offset - from < self.bytes(of)?.unwrap_or(u64::MAX) {
                            inside = Some((name, of, offset - from));
                            break;
                        }
                    }
                    let Some((name, of, rest)) = inside else { break };
                    if let Some(name) = name {
                        path.push('.');
                        path.push_str(&name);
                    }
                    (kind, offset) = (of, rest);
                }
                TypeKind::Array { element: Some(element), counts } => {
                    let mut stride = self.bytes(element)?.unwrap_or(0);
                    let mut strides = Vec::new();
                    // In `a[2][3]` the last index varies fastest.
                    for count in counts.iter().rev() {
                        strides.push(stride);
                        stride = stride.saturating_mul(*count);
                    }
                    for stride in strides.into_iter().rev().filter(|stride| *stride > 0) {
                        path.push_str(&format!("[{}]", offset / stride));
                        offset %= stride;
                    }
                    kind = element;
                }
                _ => break,
            }
        }
        Ok(path.trim_start_matches('.').to_owned())
    }

    /// Returns the offset of a member in a structure, also of one inside of anonymous structures.
    ///
    /// # Errors
    /// Damaged debug information.
    fn member(&self, structure: &str, member: &str) -> Result<Option<u64>> {
        let mut open: Vec<(TypeId, u64)> =
            self.structure(structure).into_iter().map(|kind| (kind, 0)).collect();
        let mut seen = HashSet::new();
        while let Some((kind, begin)) = open.pop() {
            // In damaged information a type is inside of itself, or many times in another.
            if !seen.insert(kind) {
                continue;
            }
            for Member { name, kind, offset } in self.members(kind)? {
                let at = begin.saturating_add(offset);
                match (name, kind) {
                    (Some(name), _) if name == member => return Ok(Some(at)),
                    (None, Some(kind)) => open.push((kind, at)),
                    _ => {}
                }
            }
        }
        Ok(None)
    }
}

/// Returns a type's name, through at most `depth` pointers and arrays.
fn name_within<T: TypeSource + ?Sized>(types: &T, kind: TypeId, depth: u32) -> Result<String> {
    let Some((_, plain)) = types.strip_qualifiers(kind)? else { return Ok("void".into()) };
    let of = |of: Option<TypeId>| match (of, depth.checked_sub(1)) {
        (Some(of), Some(depth)) => name_within(types, of, depth),
        _ => Ok("void".into()),
    };
    // An anonymous type has the name of its `typedef`.
    let name = match plain.name {
        Some(name) => name,
        None => types.data_type(kind)?.name.unwrap_or_default(),
    };
    Ok(match plain.kind {
        TypeKind::Structure => format!("struct {name}"),
        TypeKind::Union => format!("union {name}"),
        TypeKind::Enumeration => format!("enum {name}"),
        TypeKind::Array { element, counts } => {
            let counts: String = counts.iter().map(|count| format!("[{count}]")).collect();
            format!("{}{counts}", of(element)?)
        }
        TypeKind::Pointer(to) => format!("{} *", of(to)?),
        _ => name.into_owned(),
    })
}
