//! Descriptions of events, as in `events/SYSTEM/EVENT/format`.

use super::bytes::Order;

/// Field of an event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventField {
    /// Name without the brackets of an array.
    pub name: String,
    /// Offset in the event's bytes.
    pub offset: usize,
    /// Size in bytes.
    pub size: usize,
    /// Numbers are signed.
    pub signed: bool,
    /// Kind of a field that says where its data are in the event.
    pub dynamic: FieldPlace,
}

/// Place of a field's data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FieldPlace {
    /// The data are the field.
    #[default]
    Here,
    /// The field has the data's offset from the event's begin.
    FromBegin,
    /// The field has the data's offset from its own end.
    FromField,
}

/// Description of a kind of event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFormat {
    /// System, for example `sched`.
    pub system: String,
    /// Name, for example `sched_switch`.
    pub name: String,
    /// Number in the events' own field `common_type`.
    pub id: u32,
    /// Fields with the common ones.
    pub fields: Vec<EventField>,
}

impl EventFormat {
    /// Parses a format; `None` if it has no name or id.
    pub fn parse(system: &str, text: &str) -> Option<Self> {
        let mut format = Self { system: system.into(), ..Self::default() };
        let mut id = None;
        for line in text.lines() {
            let line = line.trim();
            if let Some(name) = line.strip_prefix("name: ") {
                format.name = name.trim().into();
            } else if let Some(number) = line.strip_prefix("ID: ") {
                id = number.trim().parse().ok();
            } else if line.starts_with("field:") {
                format.fields.extend(field(line));
            } else if line.starts_with("print fmt:") {
                break;
            }
        }
        format.id = id?;
        (!format.name.is_empty()).then_some(format)
    }

    /// Returns a field.
    pub fn field(&self, name: &str) -> Option<&EventField> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// Parses the fields of a text in the form of `events/header_page`.
pub(super) fn fields(text: &str) -> Vec<EventField> {
    text.lines().filter_map(|line| field(line.trim())).collect()
}

/// Parses `field:TYPE NAME; offset:N; size:N; signed:N;`.
fn field(line: &str) -> Option<EventField> {
    let mut parts = line.strip_prefix("field:")?.split(';');
    let declared = parts.next()?.trim();
    let mut field = EventField::default();
    for part in parts {
        match part.trim().split_once(':') {
            Some(("offset", number)) => field.offset = number.trim().parse().ok()?,
            Some(("size", number)) => field.size = number.trim().parse().ok()?,
            Some(("signed", number)) => field.signed = number.trim() == "1",
            _ => {}
        }
    }
    field.dynamic = match declared {
        _ if declared.starts_with("__data_loc") => FieldPlace::FromBegin,
        _ if declared.starts_with("__rel_loc") => FieldPlace::FromField,
        _ => FieldPlace::Here,
    };
    let name = declared.rsplit([' ', '*']).next()?;
    field.name = name.split('[').next()?.into();
    (!field.name.is_empty()).then_some(field)
}

impl EventField {
    /// Returns the number that the field has in an event.
    #[inline]
    pub(super) fn number(&self, event: &[u8], order: Order) -> Option<u64> {
        let bytes = event.get(self.offset..self.offset.checked_add(self.size.min(8))?)?;
        let number = order.number(bytes);
        let unused = 64_u32.saturating_sub(8 * bytes.len() as u32);
        match self.signed && (1..64).contains(&unused) {
            true => Some(((number << unused) as i64 >> unused) as u64),
            false => Some(number),
        }
    }

    /// Returns the text that the field has in an event, up to its first zero.
    pub(super) fn text<'a>(&self, event: &'a [u8], order: Order) -> Option<&'a [u8]> {
        let here = event.get(self.offset..self.offset.checked_add(self.size)?)?;
        let bytes = match self.dynamic {
            FieldPlace::Here => here,
            place => {
                let word = order.number(here.get(..4)?);
                let (offset, length) = (word as usize & 0xffff, (word >> 16) as usize & 0xffff);
                let base = if place == FieldPlace::FromField { self.offset + self.size } else { 0 };
                event.get(base + offset..(base + offset).checked_add(length)?.min(event.len()))?
            }
        };
        bytes.split(|byte| *byte == 0).next()
    }
}
