//! Events of the trace and their decoder.

use crate::Error;

/// Way in which a function was entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EnterKind {
    /// Entered by a call instruction.
    Call,
    /// Entered by a jump (tail call) or by falling through; it returns together with the frame
    /// below.
    Jump,
    /// Entered by an asynchronous interrupt, unrelated to the interrupted code.
    Interrupt,
    /// Entered by an exception that the interrupted instruction caused, such as a page fault.
    Exception,
    /// Entered by a system call; the first frame above user code.
    Syscall,
}

impl EnterKind {
    /// Returns the kind with this code: its position in this list. `None` if the code is out of
    /// range.
    pub fn from_code(code: u8) -> Option<Self> {
        let all = [Self::Call, Self::Jump, Self::Interrupt, Self::Exception, Self::Syscall];
        all.get(usize::from(code)).copied()
    }
}

/// Event on the executing CPU.
///
/// A reader keeps one stack of frames per thread. `Enter` pushes a frame. Every other event states
/// exactly how many frames it pops, so that readers never guess.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Function entry.
    Enter {
        /// Function as an index into [`crate::RecorderSpec::functions`].
        function: u32,
        /// Way in which the function was entered.
        how: EnterKind,
    },
    /// Return: pops the top frame and the frames below it, up to and including the first one that
    /// was not entered by [`EnterKind::Jump`].
    Exit,
    /// Return from an interrupt or exception to kernel code: pops frames down to and including the
    /// topmost one entered by [`EnterKind::Interrupt`] or [`EnterKind::Exception`].
    Resume,
    /// Return to user code: pops every kernel frame. User frames below them stay open if user
    /// functions are traced ([`crate::Recording::kernel_functions`]).
    Leave,
    /// Frames that ended without a return of their own (as with `longjmp`). An [`Event::Exit`] that
    /// follows at the same time is the return that ended them.
    Unwind {
        /// Number of frames.
        frames: u32,
    },
    /// Context switch: another thread runs from here on.
    Switch {
        /// Thread as an index into [`crate::Recording::threads`].
        thread: u32,
    },
    /// Idle period: the CPU was halted.
    Idle {
        /// Length in virtual nanoseconds.
        ns: u64,
    },
    /// Begin of a region.
    RegionBegin {
        /// Region as an index into [`crate::Recording::regions`].
        region: u32,
    },
    /// End of a region.
    RegionEnd {
        /// Region as an index into [`crate::Recording::regions`].
        region: u32,
    },
    /// One completed operation of the innermost open region.
    Operation,
    /// Passage of an inline point.
    Point {
        /// Point as an index into [`crate::RecorderSpec::points`].
        point: u32,
    },
    /// Change of the executing CPU; the new CPU's thread continues where it stopped.
    Cpu {
        /// Number of the new CPU.
        cpu: u32,
        /// True if the CPU whose turn ends is halted; it stays halted until its next turn.
        halts: bool,
    },
    /// Wakeup of a sleeping thread.
    Wake {
        /// Thread as an index into [`crate::Recording::threads`].
        thread: u32,
    },
    /// Scheduling delay of the thread that has just got the CPU: time from when it could run until
    /// now.
    Delay {
        /// Cause of the wakeup.
        waker: Waker,
        /// Length in virtual nanoseconds.
        ns: u64,
    },
    /// Migration of a thread to another CPU.
    Migrate {
        /// Thread as an index into [`crate::Recording::threads`].
        thread: u32,
        /// CPU on which the thread ran.
        from: u32,
        /// CPU on which the thread is to run.
        to: u32,
    },
    /// Interrupt sent to another CPU.
    Signal {
        /// Number of the interrupted CPU.
        cpu: u32,
    },
    /// Contended lock acquired by the running thread, emitted when the waiting function ends.
    Lock {
        /// Waiting function as an index into [`crate::RecorderSpec::functions`].
        function: u32,
        /// Address of the lock.
        address: u64,
        /// Virtual nanoseconds since the waiting function began, including time in which other
        /// threads ran.
        ns: u64,
    },
}

/// Cause that made a thread runnable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Waker {
    /// No wakeup: the thread was preempted.
    Nobody,
    /// Woken by an interrupt.
    Interrupt,
    /// Woken by a thread, an index into [`crate::Recording::threads`].
    Thread(u32),
}

impl Waker {
    /// Returns the code that the trace stores.
    pub(crate) fn code(self) -> u64 {
        match self {
            Self::Nobody => 0,
            Self::Interrupt => 1,
            Self::Thread(thread) => u64::from(thread) + 2,
        }
    }

    fn from_code(code: u64) -> Option<Self> {
        Some(match code {
            0 => Self::Nobody,
            1 => Self::Interrupt,
            thread => Self::Thread(u32::try_from(thread - 2).ok()?),
        })
    }
}

/// Branches and model misses since the previous event, kernel and user mode together. They belong
/// to the function that was on top of the stack before the event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EventWeights {
    /// Number of taken branches.
    pub taken_branches: u64,
    /// Model: misses of the L1 instruction cache.
    pub l1i_misses: u64,
    /// Model: misses of the first-level instruction TLB.
    pub itlb_misses: u64,
}

impl EventWeights {
    /// Weights of zero.
    pub const NONE: Self = Self { taken_branches: 0, l1i_misses: 0, itlb_misses: 0 };
}

/// Event kinds in the two low bits of an event's first number.
pub(crate) mod kind {
    pub const CALL: u64 = 0;
    pub const EXIT: u64 = 1;
    pub const JUMP: u64 = 2;
    pub const OTHER: u64 = 3;
}

/// Event kinds in the byte that follows [`kind::OTHER`].
pub(crate) mod other {
    pub const INTERRUPT: u8 = 0;
    pub const EXCEPTION: u8 = 1;
    pub const SYSCALL: u8 = 2;
    pub const RESUME: u8 = 3;
    pub const LEAVE: u8 = 4;
    pub const UNWIND: u8 = 5;
    pub const SWITCH: u8 = 6;
    pub const IDLE: u8 = 7;
    pub const REGION_BEGIN: u8 = 8;
    pub const REGION_END: u8 = 9;
    pub const OPERATION: u8 = 10;
    pub const POINT: u8 = 11;
    pub const CPU: u8 = 12;
    pub const WAKE: u8 = 13;
    pub const DELAY: u8 = 14;
    pub const MIGRATE: u8 = 15;
    pub const SIGNAL: u8 = 16;
    pub const LOCK: u8 = 17;
}

/// Decoder of the events in one chunk's payload.
pub struct EventDecoder<'a> {
    bytes: &'a [u8],
    at: usize,
    wide: bool,
    weights: EventWeights,
}

impl<'a> EventDecoder<'a> {
    /// Creates a decoder for the decompressed payload of a chunk without weights.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, wide: false, weights: EventWeights::NONE }
    }

    /// Creates a decoder for a payload; `wide` is the flag of the [`crate::TraceHeader`].
    pub fn with_width(bytes: &'a [u8], wide: bool) -> Self {
        Self { wide, ..Self::new(bytes) }
    }

    /// Returns the weights of the last event read; zero in traces without weights.
    #[inline]
    pub fn weights(&self) -> EventWeights {
        self.weights
    }

    /// Returns the number of bytes read so far.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Skips this many bytes, which must be whole events.
    pub fn skip(&mut self, bytes: usize) {
        self.at = self.at.saturating_add(bytes).min(self.bytes.len());
    }

    /// Reads the next event and the number of instructions since the previous one; `None` at the
    /// end.
    // Always inlined: returning the result through memory takes longer than decoding the event.
    #[allow(clippy::should_implement_trait, clippy::inline_always)]
    #[inline(always)]
    pub fn next(&mut self) -> Result<Option<(u64, Event)>, Error> {
        if self.at == self.bytes.len() {
            return Ok(None);
        }
        let first = self.number()?;
        if self.wide {
            self.weights = self.read_weights()?;
        }
        let event = match first & 3 {
            kind::CALL => Event::Enter { function: self.number32()?, how: EnterKind::Call },
            kind::EXIT => Event::Exit,
            kind::JUMP => Event::Enter { function: self.number32()?, how: EnterKind::Jump },
            _ => self.other()?,
        };
        Ok(Some((first >> 2, event)))
    }

    #[inline]
    fn read_weights(&mut self) -> Result<EventWeights, Error> {
        let first = self.number()?;
        let (l1i_misses, itlb_misses) =
            if first & 1 == 1 { (self.number()?, self.number()?) } else { (0, 0) };
        Ok(EventWeights { taken_branches: first >> 1, l1i_misses, itlb_misses })
    }

    #[inline(never)]
    fn other(&mut self) -> Result<Event, Error> {
        let at = self.at;
        Ok(match self.byte()? {
            other::INTERRUPT => Event::Enter { function: self.number32()?, how: EnterKind::Interrupt },
            other::EXCEPTION => Event::Enter { function: self.number32()?, how: EnterKind::Exception },
            other::SYSCALL => Event::Enter { function: self.number32()?, how: EnterKind::Syscall },
            other::RESUME => Event::Resume,
            other::LEAVE => Event::Leave,
            other::UNWIND => Event::Unwind { frames: self.number32()? },
            other::SWITCH => Event::Switch { thread: self.number32()? },
            other::IDLE => Event::Idle { ns: self.fixed64()? },
            other::REGION_BEGIN => Event::RegionBegin { region: self.number32()? },
            other::REGION_END => Event::RegionEnd { region: self.number32()? },
            other::OPERATION => Event::Operation,
            other::POINT => Event::Point { point: self.number32()? },
            other::CPU => {
                let (value, at) = (self.number()?, self.at);
                let cpu = u32::try_from(value >> 1).map_err(|_| Error::Invalid {
                    what: "trace",
                    found: value,
                    at,
                })?;
                Event::Cpu { cpu, halts: value & 1 == 1 }
            }
            other::WAKE => Event::Wake { thread: self.number32()? },
            other::DELAY => {
                let (code, at) = (self.number()?, self.at);
                let waker =
                    Waker::from_code(code).ok_or(Error::Invalid { what: "trace", found: code, at })?;
                Event::Delay { waker, ns: self.number()? }
            }
            other::MIGRATE => {
                Event::Migrate { thread: self.number32()?, from: self.number32()?, to: self.number32()? }
            }
            other::SIGNAL => Event::Signal { cpu: self.number32()? },
            other::LOCK => {
                Event::Lock { function: self.number32()?, address: self.fixed64()?, ns: self.number()? }
            }
            found => return Err(Error::Invalid { what: "trace", found: found.into(), at }),
        })
    }

    #[inline]
    fn byte(&mut self) -> Result<u8, Error> {
        let byte = *self.bytes.get(self.at).ok_or(Error::Truncated { what: "trace", at: self.at })?;
        self.at += 1;
        Ok(byte)
    }

    /// Reads a LEB128 number of at most 64 bits.
    #[inline]
    fn number(&mut self) -> Result<u64, Error> {
        // Most numbers take one or two bytes.
        if let Some(&[low, high]) = self.bytes.get(self.at..self.at + 2) {
            if low < 0x80 {
                self.at += 1;
                return Ok(low.into());
            }
            if high < 0x80 {
                self.at += 2;
                return Ok(u64::from(low & 0x7f) | u64::from(high) << 7);
            }
        }
        self.long_number()
    }

    #[inline(never)]
    fn long_number(&mut self) -> Result<u64, Error> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Error::Invalid { what: "trace", found: value, at: self.at })
    }

    #[inline]
    fn number32(&mut self) -> Result<u32, Error> {
        let value = self.number()?;
        u32::try_from(value).map_err(|_| Error::Invalid { what: "trace", found: value, at: self.at })
    }

    fn fixed64(&mut self) -> Result<u64, Error> {
        let end = self.at + 8;
        let raw = self.bytes.get(self.at..end).ok_or(Error::Truncated { what: "trace", at: self.at })?;
        self.at = end;
        Ok(u64::from_le_bytes(raw.try_into().unwrap_or_default()))
    }
}
