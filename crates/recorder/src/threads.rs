//! Threads and their shadow stacks.

use kerntune_trace::{EnterKind, RecordedThread, Waker};
use std::collections::HashMap;

/// Open frame: function and way of entry.
pub type ShadowFrame = (u32, EnterKind);

/// Thread with its open frames: user frames first, then kernel frames.
pub struct ShadowStack {
    /// Identity of the thread.
    pub thread: RecordedThread,
    /// Open frames, outermost first.
    pub frames: Vec<ShadowFrame>,
    /// Stack address of each frame's return address, used if the stack pointer decides about calls.
    /// May be shorter than `frames`.
    places: Vec<u64>,
    /// Call flag ([`crate::plan`]) at the beginning of each open interrupt or exception frame.
    pub interrupted_calls: Vec<u64>,
    /// Number of user frames.
    user: usize,
    /// True if the first kernel frame stands for untraced code; no return ends it.
    root: bool,
    /// True if the thread returned to user code and has not been seen in the kernel since.
    pub in_user: bool,
    /// Address at which user code was left, and the call flag at that moment.
    left: (u64, u64),
    /// True if the program was replaced: user frames end with the system call.
    pub exec: bool,
    /// Scheduling state on several CPUs.
    pub schedule: ScheduleState,
    /// Waits for locks, outermost first.
    pub waits: Vec<LockWait>,
}

/// Scheduling state of a thread.
#[derive(Debug, Clone, Copy, Default)]
pub struct ScheduleState {
    /// CPU on which the thread ran or is to run.
    pub cpu: Option<u32>,
    /// Virtual time since when the thread can run, and its waker.
    pub ready: Option<(u64, Waker)>,
    /// Frame of the wakeup: thread, frames below, function.
    pub woken_in: Option<(u32, usize, u32)>,
}

/// Wait for a lock.
#[derive(Debug, Clone, Copy)]
pub struct LockWait {
    /// Number of frames below the waiting function.
    pub depth: usize,
    /// Waiting function.
    pub function: u32,
    /// Address of the lock.
    pub address: u64,
    /// Virtual time of the wait's beginning.
    pub since: u64,
}

/// Initial capacity of a stack, in frames.
const DEPTH: usize = 256;

impl ShadowStack {
    fn new(thread: RecordedThread) -> Self {
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
            schedule: ScheduleState::default(),
            waits: Vec::new(),
        }
    }

    /// Removes and returns the innermost wait if its function has ended.
    #[inline]
    pub fn pop_ended_wait(&mut self) -> Option<LockWait> {
        let ended = self.waits.last().is_some_and(|wait| wait.depth >= self.frames.len());
        if ended {
            self.waits.pop()
        } else {
            None
        }
    }

    /// Pushes a kernel frame.
    #[inline]
    pub fn push(&mut self, function: u32, how: EnterKind) {
        self.frames.push((function, how));
    }

    /// Pushes a kernel frame with the stack address of its return address; 0 if it has none.
    pub fn push_at(&mut self, function: u32, how: EnterKind, place: u64) {
        self.places.resize(self.frames.len(), 0);
        self.places.push(place);
        self.frames.push((function, how));
    }

    /// Returns the number of frames above the topmost one with its return address at `place`,
    /// within the current interrupt.
    pub fn frames_above_place(&self, place: u64) -> Option<usize> {
        for (above, (&(_, how), &at)) in self.frames.iter().zip(&self.places).rev().enumerate() {
            if at == place {
                return Some(above);
            }
            if matches!(how, EnterKind::Interrupt | EnterKind::Exception | EnterKind::Syscall) {
                return None;
            }
        }
        None
    }

    /// Pops the frames that end when the function below `above` frames returns.
    pub fn ret_above(&mut self, above: usize) -> PoppedFrames {
        self.frames.truncate(self.frames.len() - above);
        self.pop_returned(above as u32, 0)
    }

    /// Pushes a user frame.
    #[inline]
    pub fn push_user(&mut self, function: u32, how: EnterKind) {
        self.frames.push((function, how));
        self.user = self.frames.len();
    }

    /// Pushes a frame that stands for untraced code below all later kernel frames.
    pub fn push_root(&mut self, function: u32) {
        self.frames.push((function, EnterKind::Jump));
        self.root = true;
    }

    /// Returns true if no kernel frame is open.
    #[inline]
    pub fn kernel_is_empty(&self) -> bool {
        self.frames.len() == self.user
    }

    /// Notes that user code is left at `address` with this call flag.
    pub fn leave_user(&mut self, address: u64, call: u64) {
        self.left = (address, call);
    }

    /// Returns the call flag for user code that continues at `address`. At another address than the
    /// one at which it was left, a signal handler, program or thread begins, which no frame jumped
    /// to.
    pub fn enter_user(&mut self, address: u64) -> u64 {
        match self.left {
            (left, call) if left == address => call,
            _ => 1,
        }
    }

    /// Returns the number of frames that a return of kernel or user code cannot end.
    fn floor(&self, user: bool) -> usize {
        if user {
            0
        } else {
            self.user + usize::from(self.root)
        }
    }
}

/// Frames popped by a return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoppedFrames {
    /// Frames that ended without a return of their own: those above the returning one, and jumps
    /// directly from an interrupt's frame.
    pub unwound: u32,
    /// True if the return itself ended a frame.
    pub popped: bool,
    /// True if the returning function was not on the stack.
    pub foreign: bool,
}

/// Shadow stacks of all threads seen so far; one thread runs.
pub struct ShadowStacks {
    list: Vec<ShadowStack>,
    by_task: HashMap<u64, u32>,
    running: usize,
}

impl ShadowStacks {
    /// Creates the stacks with one thread, whose identity is still unknown.
    pub fn new() -> Self {
        let first = RecordedThread { task: 0, pid: 0, tgid: 0, comm: "[boot]".into() };
        Self { list: vec![ShadowStack::new(first)], by_task: HashMap::new(), running: 0 }
    }

    /// Returns the running thread's stack.
    #[inline]
    pub fn running(&mut self) -> &mut ShadowStack {
        &mut self.list[self.running]
    }

    /// Returns the running thread's index.
    pub fn running_index(&self) -> u32 {
        self.running as u32
    }

    /// Makes thread `index` the running one, when another CPU executes.
    pub fn run(&mut self, index: u32) {
        self.running = index as usize;
    }

    /// Adds a thread of unknown identity, for a CPU that has not begun, and returns its index.
    pub fn unknown(&mut self) -> u32 {
        self.list.push(ShadowStack::new(RecordedThread { task: 0, pid: 0, tgid: 0, comm: "[boot]".into() }));
        self.list.len() as u32 - 1
    }

    /// Returns the stack of an existing thread.
    pub fn get(&mut self, index: u32) -> &mut ShadowStack {
        &mut self.list[index as usize]
    }

    /// Returns true if this frame of a thread is still open.
    pub fn is_open(&self, (thread, depth, function): (u32, usize, u32)) -> bool {
        let stack = self.list.get(thread as usize);
        stack.and_then(|stack| stack.frames.get(depth)).is_some_and(|(open, _)| *open == function)
    }

    /// Shifts the ready times from `since` on by `ns`, because virtual time turned out to have
    /// advanced by so much more.
    pub fn idle(&mut self, since: u64, ns: u64) {
        let ready = self.list.iter_mut().filter_map(|stack| stack.schedule.ready.as_mut());
        ready.filter(|(at, _)| *at >= since).for_each(|(at, _)| *at += ns);
    }

    /// Returns all stacks in the order of their indices.
    pub fn iter(&self) -> impl Iterator<Item = &ShadowStack> {
        self.list.iter()
    }

    /// Sets the identity of the running thread.
    pub fn identify_running(&mut self, identity: RecordedThread) {
        if self.running().thread.task == 0 {
            self.by_task.insert(identity.task, self.running as u32);
        }
        self.running().thread = identity;
    }

    /// Makes `next` the running thread and returns its index.
    pub fn switch(&mut self, next: RecordedThread) -> u32 {
        let index = self.meet(next);
        self.running = index as usize;
        index
    }

    /// Returns the index of a thread, which may be a new one. A known task address with another pid
    /// is a new thread, because the kernel reuses the memory.
    pub fn meet(&mut self, thread: RecordedThread) -> u32 {
        let known = self.by_task.get(&thread.task).copied();
        match known.filter(|&i| self.list[i as usize].thread.pid == thread.pid) {
            Some(index) => {
                self.list[index as usize].thread = thread;
                index
            }
            None => {
                let index = self.list.len() as u32;
                self.by_task.insert(thread.task, index);
                self.list.push(ShadowStack::new(thread));
                index
            }
        }
    }
}

impl ShadowStack {
    /// Pops the top frame and returns true if it is a called kernel frame of `function` and no wait
    /// is open. This is the fast path for nearly all returns; [`Self::ret`] handles the others.
    #[inline]
    pub fn ret_called(&mut self, function: u32) -> bool {
        let is_plain = self.frames.last() == Some(&(function, EnterKind::Call))
            && self.frames.len() > self.user
            && self.waits.is_empty();
        if is_plain {
            self.frames.pop();
        }
        is_plain
    }

    /// Pops the frames that end with a `ret` inside `function`, in user or kernel code.
    #[inline]
    pub fn ret(&mut self, function: u32, user: bool) -> PoppedFrames {
        let mut result = PoppedFrames { unwound: 0, popped: false, foreign: false };
        let floor = self.floor(user);
        match self.frames.get(floor..).and_then(<[ShadowFrame]>::last) {
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
        let PoppedFrames { unwound, popped, .. } = self.pop_returned(result.unwound, floor);
        PoppedFrames { unwound, popped, ..result }
    }

    /// Pops the frames that end when the top frame returns, after `unwound` frames above it.
    fn pop_returned(&mut self, unwound: u32, floor: usize) -> PoppedFrames {
        let (ended, by_call) = self.pop_call(floor);
        self.user = self.user.min(self.frames.len());
        PoppedFrames { unwound: unwound + if by_call { 0 } else { ended }, popped: by_call, foreign: false }
    }

    /// Pops the frames that a jump from traced to untraced code ends, which are those that the
    /// return would have ended.
    pub fn left(&mut self, user: bool) -> PoppedFrames {
        let floor = self.floor(user);
        let (ended, by_call) = self.pop_call(floor);
        self.user = self.user.min(self.frames.len());
        PoppedFrames {
            unwound: if by_call { 0 } else { ended },
            popped: by_call && ended != 0,
            foreign: false,
        }
    }

    /// Pops the frames that one return ends: the jumps on top and the frame that made them. A
    /// return never ends the frame of an interrupt or system call, nor frames below `floor`.
    /// Returns the number of popped frames, and whether a return ends the last of them.
    fn pop_call(&mut self, floor: usize) -> (u32, bool) {
        let mut ended = 0;
        while self.frames.len() > floor {
            let Some(&(_, how)) = self.frames.last() else { break };
            if matches!(how, EnterKind::Interrupt | EnterKind::Exception | EnterKind::Syscall) {
                return (ended, false);
            }
            self.frames.pop();
            ended += 1;
            if how != EnterKind::Jump {
                return (ended, true);
            }
        }
        // A reader would also pop the root's frame, which is a jump, and the user frames.
        (ended, floor == 0)
    }

    /// Returns the number of frames above the topmost frame of `function`, within the current
    /// interrupt.
    fn frames_above(&self, function: u32, floor: usize) -> Option<usize> {
        for (above, &(f, how)) in self.frames.get(floor..)?.iter().rev().enumerate() {
            if f == function {
                return Some(above);
            }
            if matches!(how, EnterKind::Interrupt | EnterKind::Exception | EnterKind::Syscall) {
                return None;
            }
        }
        None
    }

    /// Ends the topmost interrupt or exception (`iretq`). Returns the call flag that it saved, or
    /// `None` if there was none: the thread is back in user code, and all kernel frames are gone.
    pub fn resume(&mut self) -> Option<u64> {
        let is_interrupt =
            |&(_, how): &ShadowFrame| matches!(how, EnterKind::Interrupt | EnterKind::Exception);
        let at = self.frames.iter().rposition(is_interrupt);
        self.frames.truncate(at.unwrap_or(0).max(self.user));
        let call = self.interrupted_calls.pop();
        if self.kernel_is_empty() {
            self.clear();
            return None;
        }
        Some(call.unwrap_or(0))
    }

    /// Pops all kernel frames and returns their number.
    pub fn clear(&mut self) -> usize {
        let open = self.frames.len() - self.user;
        self.frames.truncate(self.user);
        self.interrupted_calls.clear();
        self.waits.clear();
        self.root = false;
        open
    }

    /// Pops all user frames and returns their number. There must be no kernel frames.
    pub fn clear_user(&mut self) -> usize {
        self.frames.clear();
        std::mem::take(&mut self.user)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(frames: &[ShadowFrame]) -> ShadowStack {
        let mut stack = ShadowStack::new(RecordedThread { task: 1, pid: 1, tgid: 1, comm: "t".into() });
        stack.frames.extend_from_slice(frames);
        stack
    }

    #[test]
    fn a_return_ends_the_jumps_that_led_to_it() {
        let mut s = stack(&[
            (1, EnterKind::Syscall),
            (2, EnterKind::Call),
            (3, EnterKind::Jump),
            (4, EnterKind::Jump),
        ]);
        assert_eq!(s.ret(4, false), PoppedFrames { unwound: 0, popped: true, foreign: false });
        assert_eq!(s.frames, [(1, EnterKind::Syscall)]);
    }

    #[test]
    fn a_return_does_not_end_an_interrupt() {
        let mut s = stack(&[(1, EnterKind::Interrupt), (2, EnterKind::Jump)]);
        assert_eq!(s.ret(2, false), PoppedFrames { unwound: 1, popped: false, foreign: false });
        assert_eq!(s.frames, [(1, EnterKind::Interrupt)]);
        assert_eq!(s.ret(1, false), PoppedFrames { unwound: 0, popped: false, foreign: false });
        // A thread begins with a jump from no frame; its return ends it.
        let mut s = stack(&[(1, EnterKind::Jump)]);
        assert_eq!(s.ret(1, false), PoppedFrames { unwound: 0, popped: true, foreign: false });
    }

    #[test]
    fn a_return_of_a_lower_frame_unwinds_but_not_through_an_interrupt() {
        let mut s = stack(&[(1, EnterKind::Call), (2, EnterKind::Call), (3, EnterKind::Call)]);
        assert_eq!(s.ret(2, false), PoppedFrames { unwound: 1, popped: true, foreign: false });
        assert_eq!(s.frames, [(1, EnterKind::Call)]);
        let mut s = stack(&[(1, EnterKind::Call), (9, EnterKind::Interrupt), (3, EnterKind::Call)]);
        assert_eq!(s.ret(1, false), PoppedFrames { unwound: 0, popped: true, foreign: true });
        assert_eq!(s.frames, [(1, EnterKind::Call), (9, EnterKind::Interrupt)]);
        s.interrupted_calls.push(5);
        assert_eq!(s.resume(), Some(5));
        assert_eq!(s.frames, [(1, EnterKind::Call)]);
        assert_eq!(s.resume(), None);
        assert!(s.frames.is_empty());
    }

    #[test]
    fn the_kernel_does_not_touch_user_frames() {
        let mut s = stack(&[]);
        s.push_user(90, EnterKind::Call);
        s.push_user(91, EnterKind::Jump);
        s.push(1, EnterKind::Syscall);
        s.push(2, EnterKind::Call);
        assert_eq!(s.ret(91, false), PoppedFrames { unwound: 0, popped: true, foreign: true });
        assert_eq!(s.ret(2, false), PoppedFrames { unwound: 0, popped: false, foreign: true });
        assert_eq!(s.clear(), 1);
        assert_eq!(s.ret(2, false), PoppedFrames { unwound: 0, popped: false, foreign: false });
        s.push(3, EnterKind::Exception);
        assert_eq!(s.resume(), None);
        assert_eq!(s.frames, [(90, EnterKind::Call), (91, EnterKind::Jump)]);
        // The tail call returns together with its caller; then no frame is left.
        assert_eq!(s.ret(91, true), PoppedFrames { unwound: 0, popped: true, foreign: false });
        assert!(s.frames.is_empty() && s.kernel_is_empty());
        assert_eq!(s.ret(90, true), PoppedFrames { unwound: 0, popped: false, foreign: false });
    }

    #[test]
    fn what_is_not_traced_ends_with_the_system_call_only() {
        let mut s = stack(&[]);
        s.push_root(7);
        s.push(1, EnterKind::Call);
        assert!(s.left(false).popped);
        assert_eq!(s.left(false), PoppedFrames { unwound: 0, popped: false, foreign: false });
        s.push(2, EnterKind::Jump);
        // An `Exit` event would make readers pop the root as well.
        assert_eq!(s.ret(2, false), PoppedFrames { unwound: 1, popped: false, foreign: false });
        s.push(3, EnterKind::Interrupt);
        s.interrupted_calls.push(1);
        assert_eq!(s.resume(), Some(1));
        assert_eq!(s.frames, [(7, EnterKind::Jump)]);
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
        let thread = |task, pid| RecordedThread { task, pid, tgid: pid, comm: String::new() };
        let mut threads = ShadowStacks::new();
        threads.identify_running(thread(10, 0));
        assert_eq!(threads.switch(thread(20, 5)), 1);
        threads.running().frames.push((1, EnterKind::Call));
        assert_eq!(threads.switch(thread(10, 0)), 0);
        assert_eq!(threads.switch(thread(20, 5)), 1);
        assert_eq!(threads.running().frames.len(), 1);
        assert_eq!(threads.switch(thread(20, 6)), 2);
        assert!(threads.running().frames.is_empty());
    }
}
