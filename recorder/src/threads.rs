//! Threads and their shadow stacks.

use kerntune_trace::{How, Thread};
use std::collections::HashMap;

/// An open frame.
pub type Frame = (u32, How);

/// A thread and the frames that it has open.
pub struct Stack {
    /// Who it is.
    pub thread: Thread,
    /// Open frames, outermost first.
    pub frames: Vec<Frame>,
    /// For each open interrupt or exception frame, whether a call was under way.
    pub interrupted_calls: Vec<u64>,
}

/// Frames for which a stack has room at once; deeper ones make it grow.
const DEPTH: usize = 256;

impl Stack {
    fn new(thread: Thread) -> Self {
        Self { thread, frames: Vec::with_capacity(DEPTH), interrupted_calls: Vec::with_capacity(8) }
    }
}

/// What a return popped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Return {
    /// Frames that ended without a return of their own: those above the one that returned, and
    /// jumps straight from an interrupt's frame.
    pub unwound: u32,
    /// Whether the return itself ended a frame.
    pub popped: bool,
    /// Whether the returning function was not on the stack.
    pub foreign: bool,
}

/// All threads that were seen; one of them runs.
pub struct Threads {
    list: Vec<Stack>,
    by_task: HashMap<u64, u32>,
    running: usize,
}

impl Threads {
    /// Begins with one thread of which nothing is known yet.
    pub fn new() -> Self {
        let first = Thread { task: 0, pid: 0, tgid: 0, comm: "[boot]".into() };
        Self { list: vec![Stack::new(first)], by_task: HashMap::new(), running: 0 }
    }

    /// The stack of the thread that runs.
    #[inline]
    pub fn running(&mut self) -> &mut Stack {
        &mut self.list[self.running]
    }

    /// The number of the thread that runs.
    pub fn running_index(&self) -> u32 {
        self.running as u32
    }

    /// All stacks in order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &Stack> {
        self.list.iter()
    }

    /// The thread that runs turns out to be `task`.
    pub fn identify_running(&mut self, identity: Thread) {
        if self.running().thread.task == 0 {
            self.by_task.insert(identity.task, self.running as u32);
        }
        self.running().thread = identity;
    }

    /// `next` runs from here on. Returns its number. A task at a known address with another pid
    /// is a new thread: the kernel reuses the memory.
    pub fn switch(&mut self, next: Thread) -> u32 {
        let known = self.by_task.get(&next.task).copied();
        let index = match known.filter(|&i| self.list[i as usize].thread.pid == next.pid) {
            Some(index) => {
                self.list[index as usize].thread = next;
                index
            }
            None => {
                let index = self.list.len() as u32;
                self.by_task.insert(next.task, index);
                self.list.push(Stack::new(next));
                index
            }
        };
        self.running = index as usize;
        index
    }
}

impl Stack {
    /// A `ret` inside `function`.
    #[inline]
    pub fn ret(&mut self, function: u32) -> Return {
        let mut result = Return { unwound: 0, popped: false, foreign: false };
        match self.frames.last() {
            Some(&(top, _)) if top == function => {}
            Some(_) => match self.frames_above(function) {
                Some(above) => {
                    self.truncate(self.frames.len() - above);
                    result.unwound = above as u32;
                }
                None => result.foreign = true,
            },
            None => return result,
        }
        let (ended, by_call) = self.pop_call();
        result.popped = by_call;
        if !by_call {
            result.unwound += ended;
        }
        result
    }

    /// Pops what one return ends: the jumps on top and the frame that made them. An interrupt's or
    /// system call's frame is never ended by a return. How many frames, and whether the last of
    /// them is one that a return ends.
    fn pop_call(&mut self) -> (u32, bool) {
        let mut ended = 0;
        while let Some(&(_, how)) = self.frames.last() {
            if matches!(how, How::Interrupt | How::Exception | How::Syscall) {
                return (ended, false);
            }
            self.frames.pop();
            ended += 1;
            if how != How::Jump {
                break;
            }
        }
        (ended, true)
    }

    /// How many frames lie above the topmost frame of `function`, within the current interrupt.
    fn frames_above(&self, function: u32) -> Option<usize> {
        for (above, &(f, how)) in self.frames.iter().rev().enumerate() {
            if f == function {
                return Some(above);
            }
            if matches!(how, How::Interrupt | How::Exception | How::Syscall) {
                return None;
            }
        }
        None
    }

    fn truncate(&mut self, length: usize) {
        self.frames.truncate(length);
    }

    /// `iretq`: ends the topmost interrupt or exception. Returns the call that it interrupted,
    /// or `None` if there was none: the thread is back in user code, and all frames are gone.
    pub fn resume(&mut self) -> Option<u64> {
        let is_interrupt = |&(_, how): &Frame| matches!(how, How::Interrupt | How::Exception);
        let at = self.frames.iter().rposition(is_interrupt);
        self.frames.truncate(at.unwrap_or(0));
        let call = self.interrupted_calls.pop();
        if self.frames.is_empty() {
            self.interrupted_calls.clear();
            return None;
        }
        Some(call.unwrap_or(0))
    }

    /// Back to user code: no frame is left. Returns how many there were.
    pub fn clear(&mut self) -> usize {
        let open = self.frames.len();
        self.frames.clear();
        self.interrupted_calls.clear();
        open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(frames: &[Frame]) -> Stack {
        let mut stack = Stack::new(Thread { task: 1, pid: 1, tgid: 1, comm: "t".into() });
        stack.frames.extend_from_slice(frames);
        stack
    }

    #[test]
    fn a_return_ends_the_jumps_that_led_to_it() {
        let mut s = stack(&[(1, How::Syscall), (2, How::Call), (3, How::Jump), (4, How::Jump)]);
        assert_eq!(s.ret(4), Return { unwound: 0, popped: true, foreign: false });
        assert_eq!(s.frames, [(1, How::Syscall)]);
    }

    #[test]
    fn a_return_does_not_end_an_interrupt() {
        let mut s = stack(&[(1, How::Interrupt), (2, How::Jump)]);
        assert_eq!(s.ret(2), Return { unwound: 1, popped: false, foreign: false });
        assert_eq!(s.frames, [(1, How::Interrupt)]);
        assert_eq!(s.ret(1), Return { unwound: 0, popped: false, foreign: false });
        // A thread begins with a jump to nowhere's frame: its return ends it.
        let mut s = stack(&[(1, How::Jump)]);
        assert_eq!(s.ret(1), Return { unwound: 0, popped: true, foreign: false });
    }

    #[test]
    fn a_return_of_a_lower_frame_unwinds_but_not_through_an_interrupt() {
        let mut s = stack(&[(1, How::Call), (2, How::Call), (3, How::Call)]);
        assert_eq!(s.ret(2), Return { unwound: 1, popped: true, foreign: false });
        assert_eq!(s.frames, [(1, How::Call)]);
        let mut s = stack(&[(1, How::Call), (9, How::Interrupt), (3, How::Call)]);
        assert_eq!(s.ret(1), Return { unwound: 0, popped: true, foreign: true });
        assert_eq!(s.frames, [(1, How::Call), (9, How::Interrupt)]);
        s.interrupted_calls.push(5);
        assert_eq!(s.resume(), Some(5));
        assert_eq!(s.frames, [(1, How::Call)]);
        assert_eq!(s.resume(), None);
        assert!(s.frames.is_empty());
    }

    #[test]
    fn reused_task_memory_is_a_new_thread() {
        let thread = |task, pid| Thread { task, pid, tgid: pid, comm: String::new() };
        let mut threads = Threads::new();
        threads.identify_running(thread(10, 0));
        assert_eq!(threads.switch(thread(20, 5)), 1);
        threads.running().frames.push((1, How::Call));
        assert_eq!(threads.switch(thread(10, 0)), 0);
        assert_eq!(threads.switch(thread(20, 5)), 1);
        assert_eq!(threads.running().frames.len(), 1);
        assert_eq!(threads.switch(thread(20, 6)), 2);
        assert!(threads.running().frames.is_empty());
    }
}
