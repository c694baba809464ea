//! Encoding of events. Nothing here allocates as long as the buffer has [`EVENT_MAX`] bytes to
//! spare.

use crate::event::{kind, other};
use crate::{EnterKind, Event, EventWeights};

/// Longest encoding of one event, in bytes.
///
/// A number takes 10 bytes, weights 30, the kind 1, and the arguments of [`Event::Lock`] 23.
pub const EVENT_MAX: usize = 64;

/// Appends one event of a trace without weights. `delta` is the number of instructions since the
/// previous event.
#[inline(always)]
pub fn event(out: &mut Vec<u8>, delta: u64, event: Event) {
    put(out, delta, None, event);
}

/// Appends one event of a wide trace, with its weights. `delta` is the number of instructions since
/// the previous event.
#[inline]
pub fn wide_event(out: &mut Vec<u8>, delta: u64, weights: EventWeights, event: Event) {
    put(out, delta, Some(weights), event);
}

// A constant event leaves a few instructions of this.
#[inline(always)]
fn put(out: &mut Vec<u8>, delta: u64, weights: Option<EventWeights>, event: Event) {
    let code = match event {
        Event::Enter { how: EnterKind::Call, .. } => kind::CALL,
        Event::Exit => kind::EXIT,
        Event::Enter { how: EnterKind::Jump, .. } => kind::JUMP,
        _ => kind::OTHER,
    };
    number(out, delta << 2 | code);
    if let Some(EventWeights { taken_branches, l1i_misses, itlb_misses }) = weights {
        let missed = l1i_misses | itlb_misses != 0;
        number(out, taken_branches << 1 | u64::from(missed));
        if missed {
            number(out, l1i_misses);
            number(out, itlb_misses);
        }
    }
    match event {
        Event::Enter { function, how: EnterKind::Call | EnterKind::Jump } => number(out, function.into()),
        Event::Exit => {}
        rest => rare(out, rest),
    }
}

#[inline(never)]
fn rare(out: &mut Vec<u8>, event: Event) {
    let (code, argument) = match event {
        Event::Enter { function, how: EnterKind::Interrupt } => (other::INTERRUPT, Some(function)),
        Event::Enter { function, how: EnterKind::Exception } => (other::EXCEPTION, Some(function)),
        // `Call` and `Jump` are handled above; only the system call is left.
        Event::Enter { function, .. } => (other::SYSCALL, Some(function)),
        Event::Resume => (other::RESUME, None),
        Event::Leave => (other::LEAVE, None),
        Event::Unwind { frames } => (other::UNWIND, Some(frames)),
        Event::Switch { thread } => (other::SWITCH, Some(thread)),
        Event::RegionBegin { region } => (other::REGION_BEGIN, Some(region)),
        Event::RegionEnd { region } => (other::REGION_END, Some(region)),
        Event::Point { point } => (other::POINT, Some(point)),
        Event::Exit | Event::Operation => (other::OPERATION, None),
        Event::Wake { thread } => (other::WAKE, Some(thread)),
        Event::Signal { cpu } => (other::SIGNAL, Some(cpu)),
        Event::Cpu { cpu, halts } => {
            out.push(other::CPU);
            return number(out, u64::from(cpu) << 1 | u64::from(halts));
        }
        Event::Idle { ns } => {
            out.push(other::IDLE);
            return out.extend_from_slice(&ns.to_le_bytes());
        }
        Event::Delay { waker, ns } => {
            out.push(other::DELAY);
            number(out, waker.code());
            return number(out, ns);
        }
        Event::Migrate { thread, from, to } => {
            out.push(other::MIGRATE);
            return [thread, from, to].into_iter().for_each(|value| number(out, value.into()));
        }
        Event::Lock { function, address, ns } => {
            out.push(other::LOCK);
            number(out, function.into());
            out.extend_from_slice(&address.to_le_bytes());
            return number(out, ns);
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
    use crate::{EventDecoder, Waker};
    use proptest::prelude::*;

    fn any_event() -> impl Strategy<Value = Event> {
        let how = prop_oneof![
            Just(EnterKind::Call),
            Just(EnterKind::Jump),
            Just(EnterKind::Interrupt),
            Just(EnterKind::Exception),
            Just(EnterKind::Syscall)
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
            any::<u32>().prop_map(|point| Event::Point { point }),
            any::<(u32, bool)>().prop_map(|(cpu, halts)| Event::Cpu { cpu, halts }),
            any::<u32>().prop_map(|thread| Event::Wake { thread }),
            (
                prop_oneof![
                    Just(Waker::Nobody),
                    Just(Waker::Interrupt),
                    any::<u32>().prop_map(Waker::Thread)
                ],
                any::<u64>()
            )
                .prop_map(|(waker, ns)| Event::Delay { waker, ns }),
            any::<[u32; 3]>().prop_map(|[thread, from, to]| Event::Migrate { thread, from, to }),
            any::<u32>().prop_map(|cpu| Event::Signal { cpu }),
            (any::<u32>(), any::<[u64; 2]>()).prop_map(|(function, [address, ns])| Event::Lock {
                function,
                address,
                ns
            }),
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
            let mut decoder = EventDecoder::new(&bytes);
            for expected in events {
                prop_assert_eq!(decoder.next().unwrap(), Some(expected));
            }
            prop_assert_eq!(decoder.next().unwrap(), None);
        }

        #[test]
        fn weights_are_read_as_written(
            events in prop::collection::vec((0u64..1 << 62, any_event(), 0u64..1 << 62, any::<[u64; 2]>()), 0..50)
        ) {
            let mut bytes = Vec::new();
            let weights = |taken_branches, [l1i_misses, itlb_misses]: [u64; 2]| {
                EventWeights { taken_branches, l1i_misses, itlb_misses }
            };
            for (delta, e, taken, misses) in &events {
                let before = bytes.len();
                wide_event(&mut bytes, *delta, weights(*taken, *misses), *e);
                prop_assert!(bytes.len() - before <= EVENT_MAX);
            }
            let mut decoder = EventDecoder::with_width(&bytes, true);
            for (delta, event, taken, misses) in events {
                prop_assert_eq!(decoder.next().unwrap(), Some((delta, event)));
                prop_assert_eq!(decoder.weights(), weights(taken, misses));
            }
            prop_assert_eq!(decoder.next().unwrap(), None);
        }

        #[test]
        fn foreign_bytes_end_in_an_error_or_the_end(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for wide in [false, true] {
                let mut decoder = EventDecoder::with_width(&bytes, wide);
                while let Ok(Some(_)) = decoder.next() {}
            }
        }
    }
}
