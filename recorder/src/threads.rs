//! Threads and their shadow stacks.

use kerntune_trace::{How, Thread, Waker};
use std::collections::HashMap;

/// An open frame.
pub type Frame = (u32, How);

/// A thread and the frames that it has open: user frames, then the kernel's.
pub struct Stack {
    /// Who it is.
    pub thread: Thread,
    /// Open frames, outermost first.
    pub frames: Vec<Frame>,
    /// Where the return address of each frame is; of as many as there are, where the stack pointer says what is called.
    places: Vec<u64>,
    /// For each open interrupt or exception frame, the call flag ([`crate::plan`]) when it came.
    pub interrupted_calls: Vec<u64>,
    /// How many of the frames are user frames.
    user: usize,
    /// Whether the first kernel frame stands for code that is not traced; no return ends it.
    root: bool,
    /// Whether the thread went back to user code and has not been seen in the kernel since.
    pub in_user: bool,
    /// Where user code was left, and the call flag of that moment.
    left: (u64, u64),
    /// The program was replaced: user frames end with the system call.
    pub exec: bool,
    /// What it does on several CPUs.
    pub life: Life,
    /// The locks that it waits for, outermost first.
    pub waits: Vec<Wait>,
}

/// Where a thread runs, and since when it could.
#[derive(Debug, Clone, Copy, Default)]
pub struct Life {
    /// The CPU that it ran on, or is to run on.
    pub cpu: Option<u32>,
    /// Virtual time since when it could run, and who made it so.
    pub ready: Option<(u64, Waker)>,
    /// The frame in which that was done: thread, frames below, function.
    pub woken_in: Option<(u32, usize, u32)>,
}

/// A wait for a lock.
#[derive(Debug, Clone, Copy)]
pub struct Wait {
    /// Frames below that of the function which waits.
    pub depth: usize,
    /// That function.
    pub function: u32,
    /// Where the lock is.
    pub address: u64,
    /// Virtual time at which it began.
    pub since: u64,
}

/// Frames for which a stack has room at once; deeper ones make it grow.
const DEPTH: usize = 256;

impl Stack {
    fn new(thread: Thread) -> Self {
        Self {
            thread,
            frames: Vec::with_capacity(DEPTH),
            places: Vec::new(),
            interrupted_calls: Vec::with_capacity(8),
            user: 0,
            root: false,
            in_user: false,
            left: (0, 1),
            exec: false,
            life: Life::default(),
            waits: Vec::new(),
        }
    }

    /// The innermost wait, if its function has ended.
    #[inline]
    pub fn waited(&mut self) -> Option<Wait> {
        let ended = self.waits.last().is_some_and(|wait| wait.depth >= self.frames.len());
        if ended {
            self.waits.pop()
        } else {
            None
        }
    }

    /// A function is entered.
    #[inline]
    pub fn push(&mut self, function: u32, how: How) {
        self.frames.push((function, how));
    }

    /// The same, with the place of its return address; 0 if it has none.
    pub fn push_at(&mut self, function: u32, how: How, place: u64) {
        self.places.resize(self.frames.len(), 0);
        self.places.push(place);
        self.frames.push((function, how));
    }

    /// How many frames lie above the topmost one whose return address is at `place`, within the current interrupt.
    pub fn frames_above_place(&self, place: u64) -> Option<usize> {
        for (above, (&(_, how), &at)) in self.frames.iter().zip(&self.places).rev().enumerate() {
            if at == place {
                return Some(above);
            }
            if matches!(how, How::Interrupt | How::Exception | How::Syscall) {
                return None;
            }
        }
        None
    }

    /// A `ret` of the function that has so many frames above it.
    pub fn ret_above(&mut self, above: usize) -> Return {
        self.frames.truncate(self.frames.len() - above);
        self.pop_returned(above as u32, 0)
    }

    /// A user function is entered.
    #[inline]
    pub fn push_user(&mut self, function: u32, how: How) {
        self.frames.push((function, how));
        self.user = self.frames.len();
    }

    /// Puts a frame for what is not traced below those that will come.
    pub fn push_root(&mut self, function: u32) {
        self.frames.push((function, How::Jump));
        self.root = true;
    }

    /// Whether no kernel frame is open.
    #[inline]
    pub fn kernel_is_empty(&self) -> bool {
        self.frames.len() == self.user
    }

    /// User code is left at `address`, with this call flag.
    pub fn leave_user(&mut self, address: u64, call: u64) {
        self.left = (address, call);
    }

    /// The call flag for user code that goes on at `address`. Elsewhere than where it was left begins
    /// what nothing of the stack jumped to: a signal's handler, a program, a thread.
    pub fn enter_user(&mut self, address: u64) -> u64 {
        match self.left {
            (left, call) if left == address => call,
            _ => 1,
        }
    }

    /// The frames that a return of kernel or user code cannot end.
    fn floor(&self, user: bool) -> usize {
        if user {
            0
        } else {
            self.user + usize::from(self.root)
        }
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

    /// Another CPU executes, on which thread `index` runs.
    pub fn run(&mut self, index: u32) {
        self.running = index as usize;
    }

    /// A thread of which nothing is known yet, of a CPU that has not begun. Returns its number.
    pub fn unknown(&mut self) -> u32 {
        self.list.push(Stack::new(Thread { task: 0, pid: 0, tgid: 0, comm: "[boot]".into() }));
        self.list.len() as u32 - 1
    }

    /// A thread by its number, which is known.
    pub fn get(&mut self, index: u32) -> &mut Stack {
        &mut self.list[index as usize]
    }

    /// Whether a frame of a thread is still open.
    pub fn is_open(&self, (thread, depth, function): (u32, usize, u32)) -> bool {
        let stack = self.list.get(thread as usize);
        stack.and_then(|stack| stack.frames.get(depth)).is_some_and(|(open, _)| *open == function)
    }

    /// Virtual time has gone on by so much more than was known when these could run since then.
    pub fn idle(&mut self, since: u64, ns: u64) {
        let ready = self.list.iter_mut().filter_map(|stack| stack.life.ready.as_mut());
        ready.filter(|(at, _)| *at >= since).for_each(|(at, _)| *at += ns);
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

    /// `next` runs from here on. Returns its number.
    pub fn switch(&mut self, next: Thread) -> u32 {
        let index = self.meet(next);
        self.running = index as usize;
        index
    }

    /// The number of a thread, new or known. A task at a known address with another pid is a new
    /// thread: the kernel reuses the memory.
    pub fn meet(&mut self, thread: Thread) -> u32 {
        let known = self.by_task.get(&thread.task).copied();
        match known.filter(|&i| self.list[i as usize].thread.pid == thread.pid) {
            Some(index) => {
                self.list[index as usize].thread = thread;
                index
            }
            None => {
                let index = self.list.len() as u32;
                self.by_task.insert(thread.task, index);
                self.list.push(Stack::new(thread));
                index
            }
        }
    }
}

impl Stack {
    /// Ends the top frame if it is one of the kernel's `function`, which was called, and nothing is waited for: what nearly all
    /// returns are. [`Self::ret`] is for all.
    #[inline]
    pub fn ret_called(&mut self, function: u32) -> bool {
        let is_plain = self.frames.last() == Some(&(function, How::Call))
            && self.frames.len() > self.user
            && self.waits.is_empty();
        if is_plain {
            self.frames.pop();
        }
        is_plain
    }

    /// A `ret` inside `function`, of user code or the kernel's.
    #[inline]
    pub fn ret(&mut self, function: u32, user: bool) -> Return {
        let mut result = Return { unwound: 0, popped: false, foreign: false };
        let floor = self.floor(user);
        match self.frames.get(floor..).and_then(<[Frame]>::last) {
            Some(&(top, _)) if top == function => {}
            Some(_) => match self.frames_above(function, floor) {
                Some(above) => {
                    self.frames.truncate(self.frames.len() - above);
                    result.unwound = above as u32;
                }
                None => result.foreign = true,
            },
            None => return result,
        }
        let Return { unwound, popped, .. } = self.pop_returned(result.unwound, floor);
        Return { unwound, popped, ..result }
    }

    /// Pops what the return of the top frame ends, after so many above it.
    fn pop_returned(&mut self, unwound: u32, floor: usize) -> Return {
        let (ended, by_call) = self.pop_call(floor);
        self.user = self.user.min(self.frames.len());
        Return { unwound: unwound + if by_call { 0 } else { ended }, popped: by_call, foreign: false }
    }

    /// Traced code jumped to code that is not traced: ends what its return would have ended.
    pub fn left(&mut self, user: bool) -> Return {
        let floor = self.floor(user);
        let (ended, by_call) = self.pop_call(floor);
        self.user = self.user.min(self.frames.len());
        Return { unwound: if by_call { 0 } else { ended }, popped: by_call && ended != 0, foreign: false }
    }

    /// Pops what one return ends: the jumps on top and the frame that made them. An interrupt's or
    /// system call's frame is never ended by a return, nor are those below `floor`. How many
    /// frames, and whether the last of them is one that a return ends.
    fn pop_call(&mut self, floor: usize) -> (u32, bool) {
        let mut ended = 0;
        while self.frames.len() > floor {
            let Some(&(_, how)) = self.frames.last() else { break };
            if matches!(how, How::Interrupt | How::Exception | How::Syscall) {
                return (ended, false);
            }
            self.frames.pop();
            ended += 1;
            if how != How::Jump {
                return (ended, true);
            }
        }
        // A reader would go on through the root's frame, which is a jump, and the frames of user code.
        (ended, floor == 0)
    }

    /// How many frames lie above the topmost frame of `function`, within the current interrupt.
    fn frames_above(&self, function: u32, floor: usize) -> Option<usize> {
        for (above, &(f, how)) in self.frames.get(floor..)?.iter().rev().enumerate() {
            if f == function {
                return Some(above);
            }
            if matches!(how, How::Interrupt | How::Exception | How::Syscall) {
                return None;
            }
        }
        None
    }

    /// `iretq`: ends the topmost interrupt or exception. Returns the call flag that it saved, or
    /// `None` if there was none: the thread is back in user code, and all kernel frames are gone.
    pub fn resume(&mut self) -> Option<u64> {
        let is_interrupt = |&(_, how): &Frame| matches!(how, How::Interrupt | How::Exception);
        let at = self.frames.iter().rposition(is_interrupt);
        self.frames.truncate(at.unwrap_or(0).max(self.user));
        let call = self.interrupted_calls.pop();
        if self.kernel_is_empty() {
            self.clear();
            return None;
        }
        Some(call.unwrap_or(0))
    }

    /// No kernel frame is left. Returns how many there were.
    pub fn clear(&mut self) -> usize {
        let open = self.frames.len() - self.user;
        self.frames.truncate(self.user);
        self.interrupted_calls.clear();
        self.waits.clear();
        self.root = false;
        open
    }

    /// No user frame is left; there must be no kernel frame. Returns how many there were.
    pub fn clear_user(&mut self) -> usize {
        self.frames.clear();
        std::mem::take(&mut self.user)
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
        assert_eq!(s.ret(4, false), Return { unwound: 0, popped: true, foreign: false });
        assert_eq!(s.frames, [(1, How::Syscall)]);
    }

    #[test]
    fn a_return_does_not_end_an_interrupt() {
        let mut s = stack(&[(1, How::Interrupt), (2, How::Jump)]);
        assert_eq!(s.ret(2, false), Return { unwound: 1, popped: false, foreign: false });
        assert_eq!(s.frames, [(1, How::Interrupt)]);
        assert_eq!(s.ret(1, false), Return { unwound: 0, popped: false, foreign: false });
        // A thread begins with a jump to nowhere's frame: its return ends it.
        let mut s = stack(&[(1, How::Jump)]);
        assert_eq!(s.ret(1, false), Return { unwound: 0, popped: true, foreign: false });
    }

    #[test]
    fn a_return_of_a_lower_frame_unwinds_but_not_through_an_interrupt() {
        let mut s = stack(&[(1, How::Call), (2, How::Call), (3, How::Call)]);
        assert_eq!(s.ret(2, false), Return { unwound: 1, popped: true, foreign: false });
        assert_eq!(s.frames, [(1, How::Call)]);
        let mut s = stack(&[(1, How::Call), (9, How::Interrupt), (3, How::Call)]);
        assert_eq!(s.ret(1, false), Return { unwound: 0, popped: true, foreign: true });
        assert_eq!(s.frames, [(1, How::Call), (9, How::Interrupt)]);
        s.interrupted_calls.push(5);
        assert_eq!(s.resume(), Some(5));
        assert_eq!(s.frames, [(1, How::Call)]);
        assert_eq!(s.resume(), None);
        assert!(s.frames.is_empty());
    }

    #[test]
    fn the_kernel_does_not_touch_user_frames() {
        let mut s = stack(&[]);
        s.push_user(90, How::Call);
        s.push_user(91, How::Jump);
        s.push(1, How::Syscall);
        s.push(2, How::Call);
        assert_eq!(s.ret(91, false), Return { unwound: 0, popped: true, foreign: true });
        assert_eq!(s.ret(2, false), Return { unwound: 0, popped: false, foreign: true });
        assert_eq!(s.clear(), 1);
        assert_eq!(s.ret(2, false), Return { unwound: 0, popped: false, foreign: false });
        s.push(3, How::Exception);
        assert_eq!(s.resume(), None);
        assert_eq!(s.frames, [(90, How::Call), (91, How::Jump)]);
        // The tail call returns with its caller; then nothing is left.
        assert_eq!(s.ret(91, true), Return { unwound: 0, popped: true, foreign: false });
        assert!(s.frames.is_empty() && s.kernel_is_empty());
        assert_eq!(s.ret(90, true), Return { unwound: 0, popped: false, foreign: false });
    }

    #[test]
    fn what_is_not_traced_ends_with_the_system_call_only() {
        let mut s = stack(&[]);
        s.push_root(7);
        s.push(1, How::Call);
        assert!(s.left(false).popped);
        assert_eq!(s.left(false), Return { unwound: 0, popped: false, foreign: false });
        s.push(2, How::Jump);
        // An exit would make readers end the root, too.
        assert_eq!(s.ret(2, false), Return { unwound: 1, popped: false, foreign: false });
        s.push(3, How::Interrupt);
        s.interrupted_calls.push(1);
        assert_eq!(s.resume(), Some(1));
        assert_eq!(s.frames, [(7, How::Jump)]);
        assert_eq!(s.clear(), 1);
        assert!(s.kernel_is_empty());
    }

    #[test]
    fn user_code_goes_on_with_its_flag_or_begins_anew() {
        let mut s = stack(&[]);
        assert_eq!(s.enter_user(0x1000), 1, "a new thread");
        s.leave_user(0x2000, 0);
        assert_eq!(s.enter_user(0x2000), 0);
        assert_eq!(s.enter_user(0x3000), 1, "a signal's handler");
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
