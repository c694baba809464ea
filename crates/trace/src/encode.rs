//! Writing events. Nothing here allocates as long as the buffer has [`EVENT_MAX`] bytes to spare.

use crate::event::{kind, other};
use crate::{Event, How};

/// The longest encoding of one event in bytes: a number of 10 bytes, a kind, a number of 10.
pub const EVENT_MAX: usize = 24;

/// Appends one event. `delta` is the number of instructions since the event before it.
#[inline]
pub fn event(out: &mut Vec<u8>, delta: u64, event: Event) {
    match event {
        Event::Enter { function, how: How::Call } => {
            number(out, delta << 2 | kind::CALL);
            number(out, function.into());
        }
        Event::Exit => number(out, delta << 2 | kind::EXIT),
        Event::Enter { function, how: How::Jump } => {
            number(out, delta << 2 | kind::JUMP);
            number(out, function.into());
        }
        rest => rare(out, delta, rest),
    }
}

fn rare(out: &mut Vec<u8>, delta: u64, event: Event) {
    number(out, delta << 2 | kind::OTHER);
    let (code, argument) = match event {
        Event::Enter { function, how: How::Interrupt } => (other::INTERRUPT, Some(function)),
        Event::Enter { function, how: How::Exception } => (other::EXCEPTION, Some(function)),
        // Call and Jump were written by the caller; what is left is the system call.
        Event::Enter { function, .. } => (other::SYSCALL, Some(function)),
        Event::Resume => (other::RESUME, None),
        Event::Leave => (other::LEAVE, None),
        Event::Unwind { frames } => (other::UNWIND, Some(frames)),
        Event::Switch { thread } => (other::SWITCH, Some(thread)),
        Event::RegionBegin { region } => (other::REGION_BEGIN, Some(region)),
        Event::RegionEnd { region } => (other::REGION_END, Some(region)),
        Event::Exit | Event::Operation => (other::OPERATION, None),
        Event::Idle { ns } => {
            out.push(other::IDLE);
            out.extend_from_slice(&ns.to_le_bytes());
            return;
        }
    };
    out.push(code);
    if let Some(argument) = argument {
        number(out, argument.into());
    }
}

#[inline]
fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Decoder;
    use proptest::prelude::*;

    fn any_event() -> impl Strategy<Value = Event> {
        let how = prop_oneof![
            Just(How::Call),
            Just(How::Jump),
            Just(How::Interrupt),
            Just(How::Exception),
            Just(How::Syscall)
        ];
        prop_oneof![
            (any::<u32>(), how).prop_map(|(function, how)| Event::Enter { function, how }),
            Just(Event::Exit),
            Just(Event::Resume),
            Just(Event::Leave),
            Just(Event::Operation),
            any::<u32>().prop_map(|frames| Event::Unwind { frames }),
            any::<u32>().prop_map(|thread| Event::Switch { thread }),
            any::<u64>().prop_map(|ns| Event::Idle { ns }),
            any::<u32>().prop_map(|region| Event::RegionBegin { region }),
            any::<u32>().prop_map(|region| Event::RegionEnd { region }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(events in prop::collection::vec((0u64..1 << 62, any_event()), 0..50)) {
            let mut bytes = Vec::new();
            for (delta, e) in &events {
                let before = bytes.len();
                event(&mut bytes, *delta, *e);
                prop_assert!(bytes.len() - before <= EVENT_MAX);
            }
            let mut decoder = Decoder::new(&bytes);
            for expected in events {
                prop_assert_eq!(decoder.next().unwrap(), Some(expected));
            }
            prop_assert_eq!(decoder.next().unwrap(), None);
        }

        #[test]
        fn foreign_bytes_end_in_an_error_or_the_end(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut decoder = Decoder::new(&bytes);
            while let Ok(Some(_)) = decoder.next() {}
        }
    }
}
