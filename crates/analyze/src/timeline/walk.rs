//! The state of the CPU along a chunk: stacks, who runs, in which mode.

use super::{Holder, Lane};
use crate::trace_file::Chunk;
use crate::Error;
use kerntune_trace::{Event, How, Recording};

/// More frames than any kernel stack has room for return addresses.
const DEPTH_LIMIT: usize = 1 << 16;

/// What an event did to the running thread's stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// One frame more.
    Entered,
    /// Frames above this many ended.
    Ended(usize),
    /// Another stack is on the CPU.
    Switched,
    /// None.
    Nothing,
}

/// The open frames of a thread.
#[derive(Debug, Clone, Default)]
pub(super) struct Stack {
    /// Function and how it was entered, outermost first.
    pub frames: Vec<(u32, How)>,
    /// How many of them an interrupt entered.
    interrupts: u32,
}

impl Stack {
    fn pop(&mut self) -> Option<How> {
        let (_, how) = self.frames.pop()?;
        self.interrupts -= u32::from(how == How::Interrupt);
        Some(how)
    }

    fn end_down_to(&mut self, length: usize) {
        while self.frames.len() > length {
            self.pop();
        }
    }
}

/// A CPU.
pub(super) struct Walk {
    pub stacks: Vec<Stack>,
    /// Number of the running thread; one past the last if it is not known.
    pub running: usize,
    user: bool,
    threads: usize,
    kernel_functions: u32,
    chunk: usize,
}

impl Walk {
    pub fn new(recording: &Recording) -> Self {
        let threads = recording.threads.len();
        Self {
            stacks: vec![Stack::default(); threads + 1],
            running: threads,
            user: true,
            threads,
            kernel_functions: recording.kernel_functions,
            chunk: 0,
        }
    }

    /// Takes a chunk's word for everything.
    pub fn adopt(&mut self, chunk: &Chunk<'_>) -> Result<(), Error> {
        self.chunk = chunk.number;
        self.user = chunk.state.user;
        self.running = self.threads;
        for stack in &mut self.stacks {
            stack.frames.clear();
            stack.interrupts = 0;
        }
        for open in &chunk.state.stacks {
            let thread = self.thread(open.thread)?;
            if open.frames.len() > DEPTH_LIMIT {
                return Err(Error::Depth { chunk: self.chunk, limit: DEPTH_LIMIT });
            }
            if let Some(stack) = self.stacks.get_mut(thread) {
                stack.frames.clone_from(&open.frames);
                stack.interrupts =
                    open.frames.iter().filter(|(_, how)| *how == How::Interrupt).count() as u32;
            }
            if open.running {
                self.running = thread;
            }
        }
        Ok(())
    }

    /// Who has the CPU while it is not halted.
    pub fn holder(&self) -> Holder {
        let interrupts = self.stacks.get(self.running).map_or(0, |stack| stack.interrupts);
        match u32::try_from(self.running) {
            _ if interrupts > 0 => Holder { lane: Lane::Interrupt, user: false },
            Ok(thread) if self.running < self.threads => {
                Holder { lane: Lane::Thread(thread), user: self.user }
            }
            _ => Holder { lane: Lane::Unknown, user: self.user },
        }
    }

    /// Does what an event says.
    #[inline]
    pub fn event(&mut self, event: Event) -> Result<Change, Error> {
        let Some(stack) = self.stacks.get_mut(self.running) else { return Ok(Change::Nothing) };
        match event {
            Event::Enter { function, how } => {
                if stack.frames.len() >= DEPTH_LIMIT {
                    return Err(Error::Depth { chunk: self.chunk, limit: DEPTH_LIMIT });
                }
                stack.interrupts += u32::from(how == How::Interrupt);
                self.user = function > self.kernel_functions;
                stack.frames.push((function, how));
                return Ok(Change::Entered);
            }
            Event::Exit => while stack.pop() == Some(How::Jump) {},
            Event::Resume => {
                let is_entry = |(_, how): &(u32, How)| matches!(how, How::Interrupt | How::Exception);
                if let Some(at) = stack.frames.iter().rposition(is_entry) {
                    stack.end_down_to(at);
                }
            }
            Event::Leave => {
                let kernel = |(function, _): &(u32, How)| *function <= self.kernel_functions;
                let user = stack.frames.iter().rposition(|frame| !kernel(frame)).map_or(0, |at| at + 1);
                stack.end_down_to(user);
                self.user = true;
            }
            Event::Unwind { frames } => {
                stack.end_down_to(stack.frames.len().saturating_sub(frames as usize));
            }
            Event::Switch { thread } => {
                self.running = self.thread(thread)?;
                // Only the kernel switches.
                self.user = false;
                return Ok(Change::Switched);
            }
            _ => return Ok(Change::Nothing),
        }
        Ok(Change::Ended(self.depth()))
    }

    /// Open frames of the running thread.
    pub fn depth(&self) -> usize {
        self.stacks.get(self.running).map_or(0, |stack| stack.frames.len())
    }

    fn thread(&self, number: u32) -> Result<usize, Error> {
        match number as usize {
            index if index < self.threads => Ok(index),
            _ => Err(Error::Unknown { chunk: self.chunk, what: "thread", number, known: self.threads }),
        }
    }
}
