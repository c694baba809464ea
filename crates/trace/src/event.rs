//! Events and their reading.

use crate::Error;

/// How a function came to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum How {
    /// By a call instruction.
    Call,
    /// By a jump (tail call) or by falling into it: returns together with the frame below.
    Jump,
    /// By an interrupt: asynchronous, of no concern to what it interrupted.
    Interrupt,
    /// By an exception: caused by the instruction that it interrupted (page fault …).
    Exception,
    /// By a system call: the first frame above user code.
    Syscall,
}

impl How {
    /// The one that `code` stands for: its place in this list.
    pub fn from_code(code: u8) -> Option<Self> {
        let all = [Self::Call, Self::Jump, Self::Interrupt, Self::Exception, Self::Syscall];
        all.get(usize::from(code)).copied()
    }
}

/// One thing that happened on the CPU that executes.
///
/// Reading keeps one stack of frames per thread. `Enter` pushes; every other event says exactly
/// what it pops, so that a reader never guesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A function begins.
    Enter {
        /// Index into [`crate::RecorderSpec::functions`].
        function: u32,
        /// How it came to run.
        how: How,
    },
    /// A return: the top frame ends, and with it the frames below it up to and including the
    /// first that was not entered by [`How::Jump`].
    Exit,
    /// Return from interrupt or exception to kernel code: ends the frames down to and including
    /// the topmost that was entered by [`How::Interrupt`] or [`How::Exception`].
    Resume,
    /// Back to user code: every frame of a kernel function ends. User frames below them, where
    /// user functions are traced ([`crate::Recording::kernel_functions`]), go on.
    Leave,
    /// So many frames ended without a return of their own (`longjmp`-like). An [`Event::Exit`] that
    /// follows at the same time is the return that ended them.
    Unwind {
        /// How many.
        frames: u32,
    },
    /// Another thread runs from here on.
    Switch {
        /// Index into [`crate::Recording::threads`].
        thread: u32,
    },
    /// The CPU was halted for so many nanoseconds.
    Idle {
        /// Virtual nanoseconds.
        ns: u64,
    },
    /// A region begins.
    RegionBegin {
        /// Index into [`crate::Recording::regions`].
        region: u32,
    },
    /// A region ends.
    RegionEnd {
        /// Index into [`crate::Recording::regions`].
        region: u32,
    },
    /// One operation of the innermost open region is done.
    Operation,
    /// An inline point was passed.
    Point {
        /// Index into [`crate::RecorderSpec::points`].
        point: u32,
    },
    /// Another CPU executes from here on; its thread continues where it stopped.
    Cpu {
        /// Its number.
        cpu: u32,
        /// Whether the CPU whose turn ends is halted, which it is until its next turn.
        halts: bool,
    },
    /// A thread that sleeps is woken up.
    Wake {
        /// Index into [`crate::Recording::threads`].
        thread: u32,
    },
    /// The thread that has just got the CPU had waited for one since it could run.
    Delay {
        /// Who had woken it up.
        waker: Waker,
        /// Virtual nanoseconds.
        ns: u64,
    },
    /// A thread is to run on another CPU than where it ran.
    Migrate {
        /// Index into [`crate::Recording::threads`].
        thread: u32,
        /// The CPU that it ran on.
        from: u32,
        /// The CPU that it is to run on.
        to: u32,
    },
    /// Another CPU is interrupted.
    Signal {
        /// Its number.
        cpu: u32,
    },
    /// The running thread has got a lock for which it had to wait: a function that waits for locks has ended.
    Lock {
        /// Index into [`crate::RecorderSpec::functions`].
        function: u32,
        /// Where the lock is in memory.
        address: u64,
        /// Virtual nanoseconds since the function began, whoever ran meanwhile.
        ns: u64,
    },
}

/// Who made it possible for a thread to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Waker {
    /// Nobody: the CPU had been taken from it.
    Nobody,
    /// An interrupt.
    Interrupt,
    /// A thread: index into [`crate::Recording::threads`].
    Thread(u32),
}

impl Waker {
    /// As a number, for the trace.
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

/// What passed beside time since the event before, in kernel and user mode together. It belongs to
/// whatever was on top before the event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Weights {
    /// Branches taken.
    pub taken_branches: u64,
    /// Model: misses of the first-level instruction cache.
    pub l1i_misses: u64,
    /// Model: misses of the first-level instruction TLB.
    pub itlb_misses: u64,
}

impl Weights {
    /// No branch, no miss.
    pub const NONE: Self = Self { taken_branches: 0, l1i_misses: 0, itlb_misses: 0 };
}

/// Kinds in the two low bits of an event's first number.
pub(crate) mod kind {
    pub const CALL: u64 = 0;
    pub const EXIT: u64 = 1;
    pub const JUMP: u64 = 2;
    pub const OTHER: u64 = 3;
}

/// Kinds in the byte after [`kind::OTHER`].
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

/// Reads the events of one chunk's payload.
pub struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
    wide: bool,
    weights: Weights,
}

impl<'a> Decoder<'a> {
    /// `bytes` is a chunk's payload, decompressed, of a trace without weights.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, wide: false, weights: Weights::NONE }
    }

    /// The same of a trace whose header says `wide`.
    pub fn with_width(bytes: &'a [u8], wide: bool) -> Self {
        Self { wide, ..Self::new(bytes) }
    }

    /// What came with the event that was read last.
    #[inline]
    pub fn weights(&self) -> Weights {
        self.weights
    }

    /// Bytes read so far.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Leaves out so many bytes, which must be whole events.
    pub fn skip(&mut self, bytes: usize) {
        self.at = self.at.saturating_add(bytes).min(self.bytes.len());
    }

    /// The next event with the number of instructions since the one before it; `None` at the end.
    // Inlined always: to hand the result over in memory takes longer than to read the event.
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
            kind::CALL => Event::Enter { function: self.number32()?, how: How::Call },
            kind::EXIT => Event::Exit,
            kind::JUMP => Event::Enter { function: self.number32()?, how: How::Jump },
            _ => self.other()?,
        };
        Ok(Some((first >> 2, event)))
    }

    #[inline]
    fn read_weights(&mut self) -> Result<Weights, Error> {
        let first = self.number()?;
        let (l1i_misses, itlb_misses) =
            if first & 1 == 1 { (self.number()?, self.number()?) } else { (0, 0) };
        Ok(Weights { taken_branches: first >> 1, l1i_misses, itlb_misses })
    }

    #[inline(never)]
    fn other(&mut self) -> Result<Event, Error> {
        let at = self.at;
        Ok(match self.byte()? {
            other::INTERRUPT => Event::Enter { function: self.number32()?, how: How::Interrupt },
            other::EXCEPTION => Event::Enter { function: self.number32()?, how: How::Exception },
            other::SYSCALL => Event::Enter { function: self.number32()?, how: How::Syscall },
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

    /// LEB128, at most 64 bits.
    #[inline]
    fn number(&mut self) -> Result<u64, Error> {
        // Most have one byte or two.
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
