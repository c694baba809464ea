//! Values of columns and fields, as JSON has them.

use serde::ser::{Serialize, SerializeMap, Serializer};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Value of a cell or field. Numbers keep all their digits; texts are raw and escaped by each
/// renderer.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Not known, or not applicable.
    Null,
    /// True or false.
    Bool(bool),
    /// Natural number: a count, or ticks.
    Count(u64),
    /// Difference of two counts.
    Integer(i128),
    /// Number with a fraction. JSON has `null` for infinities and NaN.
    Number(f64),
    /// Text.
    Text(String),
    /// Values in order.
    List(Vec<Value>),
    /// Members in order.
    Record(Vec<(Cow<'static, str>, Value)>),
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Count(value) => serializer.serialize_u64(*value),
            Value::Integer(value) => match i64::try_from(*value) {
                Ok(value) => serializer.serialize_i64(value),
                Err(_) => serializer.serialize_i128(*value),
            },
            Value::Number(value) => serializer.serialize_f64(*value),
            Value::Text(value) => serializer.serialize_str(value),
            Value::List(values) => serializer.collect_seq(values),
            Value::Record(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (key, value) in members {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}

/// Type that a column or field can have.
pub trait ToValue {
    /// Name of the type in documentation: `integer`, `string or null`.
    const TYPE: TypeName;

    /// Converts to a value.
    fn to_value(self) -> Value;
}

/// JSON type of a column, and whether it can be null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypeName {
    /// JSON type, as documentation names it.
    pub name: &'static str,
    /// `null` is possible.
    pub is_nullable: bool,
}

impl TypeName {
    /// Creates a type that is never null.
    pub const fn of(name: &'static str) -> Self {
        Self { name, is_nullable: false }
    }
}

impl std::fmt::Display for TypeName {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        out.write_str(self.name)?;
        if self.is_nullable {
            out.write_str(" or null")?;
        }
        Ok(())
    }
}

macro_rules! to_value {
    ($($type:ty, $name:literal, $value:ident => $convert:expr;)*) => {
        $(impl ToValue for $type {
            const TYPE: TypeName = TypeName::of($name);

            fn to_value(self) -> Value {
                let $value = self;
                $convert
            }
        })*
    };
}

to_value! {
    bool, "boolean", value => Value::Bool(value);
    u64, "integer", value => Value::Count(value);
    u32, "integer", value => Value::Count(value.into());
    usize, "integer", value => Value::Count(value as u64);
    i64, "integer", value => Value::Integer(value.into());
    i128, "integer", value => Value::Integer(value);
    f64, "number", value => Value::Number(value);
    String, "string", value => Value::Text(value);
    &str, "string", value => Value::Text(value.into());
    &String, "string", value => Value::Text(value.clone());
}

impl<T: ToValue> ToValue for Option<T> {
    const TYPE: TypeName = TypeName { is_nullable: true, ..T::TYPE };

    fn to_value(self) -> Value {
        self.map_or(Value::Null, T::to_value)
    }
}

impl<T: ToValue> ToValue for Vec<T> {
    const TYPE: TypeName = TypeName::of("array");

    fn to_value(self) -> Value {
        Value::List(self.into_iter().map(T::to_value).collect())
    }
}

impl<T: ToValue, const N: usize> ToValue for [T; N] {
    const TYPE: TypeName = TypeName::of("array");

    fn to_value(self) -> Value {
        Value::List(self.into_iter().map(T::to_value).collect())
    }
}

impl<K: Into<Cow<'static, str>>, T: ToValue> ToValue for BTreeMap<K, T> {
    const TYPE: TypeName = TypeName::of("object");

    fn to_value(self) -> Value {
        Value::Record(self.into_iter().map(|(key, value)| (key.into(), value.to_value())).collect())
    }
}

impl ToValue for Value {
    const TYPE: TypeName = TypeName::of("object");

    fn to_value(self) -> Value {
        self
    }
}
