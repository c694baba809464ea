//! Calls, returns and switches: the shadow stacks and their events.

use crate::board::Board;
use crate::marks::text;
use crate::plan::Landing;
use crate::recorder::Recorder;
use crate::threads::Return;
use crate::Failure;
use kerntune_isa::{Cpu, Guest, Isa};
use kerntune_trace::{Event, FunctionKind, How, Thread};

impl Recorder {
    /// The first instruction of `function` runs, `rest` instructions before the end of its block.
    #[inline]
    pub fn on_entry(&mut self, board: &mut Board, function: u32, rest: u64) -> Result<(), Failure> {
        if function > self.planner.functions.unknown() {
            return self.on_user_entry(board, function, rest);
        }
        if board.call != 0 && self.planner.functions.kind(function) == FunctionKind::Plain {
            board.call = 0;
            self.threads.running().push(function, How::Call);
            return self.emit(board, rest, Event::Enter { function, how: How::Call });
        }
        match self.entered(board, function, rest)? {
            Some(how) => {
                self.threads.running().push(function, how);
                self.emit(board, rest, Event::Enter { function, how })
            }
            None => Ok(()),
        }
    }

    /// How a function of the kernel is entered, as the call flag says; `None` if that is no entry.
    #[inline]
    fn entered(&mut self, board: &mut Board, function: u32, rest: u64) -> Result<Option<How>, Failure> {
        let kind = self.planner.functions.kind(function);
        let stack = self.threads.running();
        if kind == FunctionKind::Label && board.call == 0 && (stack.in_user || !stack.kernel_is_empty()) {
            // The way through assembly code, on behalf of what is below.
            return Ok(None);
        }
        let call = std::mem::take(&mut board.call);
        Ok(Some(match kind {
            FunctionKind::Label if call == 0 => How::Jump,
            FunctionKind::Label => How::Call,
            FunctionKind::Interrupt | FunctionKind::Exception => {
                stack.in_user = false;
                stack.interrupted_calls.push(call);
                if kind == FunctionKind::Interrupt {
                    How::Interrupt
                } else {
                    How::Exception
                }
            }
            FunctionKind::Syscall => {
                stack.in_user = false;
                let frames = stack.clear() as u32;
                self.unwound(board, rest, frames)?;
                How::Syscall
            }
            FunctionKind::Plain
            | FunctionKind::SwitchTo
            | FunctionKind::Thunk
            | FunctionKind::ReturnThunk
            | FunctionKind::Exec
            | FunctionKind::Part(_) => {
                if call != 0 {
                    How::Call
                } else if stack.frames.last().is_some_and(|&(top, _)| top == function) {
                    return Ok(None); // a loop back to the function's first instruction
                } else {
                    How::Jump
                }
            }
        }))
    }

    /// Frames have ended without a return of their own.
    fn unwound(&mut self, board: &Board, rest: u64, frames: u32) -> Result<(), Failure> {
        if frames == 0 {
            return Ok(());
        }
        if self.recording {
            self.health.unwound_frames += u64::from(frames);
        }
        self.emit(board, rest, Event::Unwind { frames })
    }

    /// The same where the stack pointer says whether `function` was called: retpolines enter functions by `ret`.
    ///
    /// Where a function begins, its return address is on top of the stack. If that is the place where the return address of
    /// an open function is, that function jumped here, and what was called since has ended.
    pub fn on_entry_at(
        &mut self,
        board: &mut Board,
        function: u32,
        rest: u64,
        cpu: &mut dyn Cpu,
    ) -> Result<(), Failure> {
        use FunctionKind::{Exception, Interrupt, Label, Syscall};
        let (kind, mut place) = (self.planner.functions.kind(function), cpu.register(Guest::STACK_POINTER));
        let how = if matches!(kind, Label | Interrupt | Exception | Syscall) {
            if kind != Label {
                place = 0;
            }
            let Some(how) = self.entered(board, function, rest)? else { return Ok(()) };
            how
        } else {
            board.call = 0;
            let stack = self.threads.running();
            match stack.frames_above_place(place) {
                Some(above) => {
                    stack.frames.truncate(stack.frames.len() - above);
                    let again = stack.frames.last().is_some_and(|&(top, _)| top == function);
                    self.unwound(board, rest, above as u32)?;
                    if again {
                        return Ok(());
                    }
                    How::Jump
                }
                None => How::Call,
            }
        };
        self.threads.running().push_at(function, how, place);
        self.emit(board, rest, Event::Enter { function, how })
    }

    fn on_user_entry(&mut self, board: &mut Board, function: u32, rest: u64) -> Result<(), Failure> {
        let call = std::mem::take(&mut board.call);
        let stack = self.threads.running();
        // If there are any: back in user code on a way that was not seen.
        let frames = stack.clear() as u32;
        self.unwound(board, rest, frames)?;
        let stack = self.threads.running();
        let how = if call != 0 { How::Call } else { How::Jump };
        if how == How::Jump && stack.frames.last().is_some_and(|&(top, _)| top == function) {
            return Ok(());
        }
        stack.push_user(function, how);
        self.emit(board, rest, Event::Enter { function, how })
    }

    /// A `ret` inside `function` is about to run.
    #[inline]
    pub fn on_return(&mut self, board: &Board, function: u32, rest: u64) -> Result<(), Failure> {
        let functions = &self.planner.functions;
        if !functions.is_selection() && self.threads.running().ret_called(function) {
            return self.emit(board, rest, Event::Exit);
        }
        let user = function > functions.unknown();
        let result = self.threads.running().ret(function, user);
        self.returned(board, rest, result, user)
    }

    /// The same where the stack pointer says which function returns: retpolines jump by `ret`, and functions return by a jump
    /// to a thunk.
    ///
    /// A return address that is not where it was when a function began is that of assembly code which moved it, or one of
    /// the function's own, which calls a place in itself to train the CPU's return stack.
    pub fn on_return_at(&mut self, board: &mut Board, rest: u64, cpu: &mut dyn Cpu) -> Result<(), Failure> {
        let functions = &self.planner.functions;
        let place = cpu.register(Guest::STACK_POINTER);
        let stack = self.threads.running();
        let above = stack.frames_above_place(place).or_else(|| {
            let &(top, how) = stack.frames.last()?;
            let mut word = [0; 8];
            let to = cpu.read(place, &mut word).then(|| u64::from_le_bytes(word));
            match functions.kind(top) {
                // A retpoline's `ret` may be a jump to a thunk, too.
                _ if to.is_some_and(|to| functions.starting(to).is_some()) => None,
                _ if to.is_some_and(|to| functions.containing(to) == top) => None,
                FunctionKind::Label if how == How::Call => Some(0),
                _ => {
                    self.health.unmatched_returns += u64::from(self.recording);
                    None
                }
            }
        });
        match above {
            Some(above) => {
                let result = stack.ret_above(above);
                self.returned(board, rest, result, false)
            }
            None => Ok(()),
        }
    }

    /// Says what a return has popped.
    fn returned(&mut self, board: &Board, rest: u64, result: Return, user: bool) -> Result<(), Failure> {
        if self.recording {
            self.health.foreign_returns += u64::from(result.foreign);
            let unmatched = u64::from(!result.popped);
            match user {
                true => self.health.headless_returns += unmatched,
                false => self.health.unmatched_returns += unmatched,
            }
            self.ended(board, rest, result)?;
        }
        self.waited(board, rest)?;
        self.keep_root(board, user, rest)
    }

    /// Traced code of the kernel or of user code jumped to code that is not traced.
    pub fn on_left(&mut self, board: &mut Board, user: bool, rest: u64) -> Result<(), Failure> {
        board.call = 1;
        let result = self.threads.running().left(user);
        if self.recording {
            self.ended(board, rest, result)?;
        }
        self.keep_root(board, user, rest)
    }

    /// Traced code of the kernel is about to jump to an address in a register or in memory.
    pub fn on_indirect(
        &mut self,
        board: &mut Board,
        jump: u32,
        rest: u64,
        cpu: &mut dyn Cpu,
    ) -> Result<(), Failure> {
        let jump = self.planner.jumps.get(jump as usize);
        match jump.and_then(|jump| Guest::jump_target(jump, cpu)).map(|to| self.planner.landing(to)) {
            Some(Landing::Left) => return self.on_left(board, false, rest),
            Some(Landing::Through) => board.call = 1,
            Some(Landing::Traced) => board.call = 0,
            None => {
                board.call = 0;
                self.health.lost_jumps += u64::from(self.recording);
            }
        }
        Ok(())
    }

    /// The call flag when the machine starts.
    pub fn first_call(&self) -> u64 {
        u64::from(self.planner.functions.is_selection())
    }

    fn ended(&mut self, board: &Board, rest: u64, result: Return) -> Result<(), Failure> {
        if result.unwound != 0 {
            // The stack is already as it will be after the exit: no chunk may begin in between.
            self.health.unwound_frames += u64::from(result.unwound);
            self.settle_if_wide(board, rest);
            let (weights, at) = (self.weigh(), self.now(board, rest));
            if let Some(trace) = &mut self.trace {
                trace.push(at, weights, Event::Unwind { frames: result.unwound });
            }
        }
        if result.popped {
            self.emit(board, rest, Event::Exit)
        } else {
            Ok(())
        }
    }

    /// In a selection, a thread in the kernel without any open function has one that stands for all
    /// that is not traced, so that its time is somebody's.
    fn keep_root(&mut self, board: &Board, user: bool, rest: u64) -> Result<(), Failure> {
        if user || !self.planner.functions.is_selection() {
            return Ok(());
        }
        let function = self.planner.functions.unknown();
        let stack = self.threads.running();
        if !stack.kernel_is_empty() {
            return Ok(());
        }
        stack.push_root(function);
        self.emit(board, rest, Event::Enter { function, how: How::Jump })
    }

    /// `__switch_to_asm(prev, next)`, which is `function`, runs.
    pub fn on_switch(
        &mut self,
        board: &mut Board,
        function: u32,
        rest: u64,
        cpu: &mut dyn Cpu,
    ) -> Result<(), Failure> {
        match self.planner.stack_pointer {
            true => self.on_entry_at(board, function, rest, cpu)?,
            false => self.on_entry(board, function, rest)?,
        }
        self.booting = false;
        self.look_at_page_table(cpu);
        let [prev, next] = Guest::ARGUMENTS.map(|register| cpu.register(register));
        if let Some(thread) = self.identify(prev, cpu) {
            self.threads.identify_running(thread);
        }
        let several = self.cpus.count() > 1;
        if several {
            self.leaves(board, prev, rest, cpu);
        }
        let next = self.identify(next, cpu).unwrap_or(Thread {
            task: next,
            pid: u32::MAX,
            tgid: u32::MAX,
            comm: "[unreadable]".into(),
        });
        let thread = self.threads.switch(next);
        self.emit(board, rest, Event::Switch { thread })?;
        if several {
            self.arrives(board, rest)?;
        }
        Ok(())
    }

    pub(crate) fn identify(&self, task: u64, cpu: &mut dyn Cpu) -> Option<Thread> {
        let mut number = |offset: u32| {
            let mut word = [0; 4];
            cpu.read(task.wrapping_add(offset.into()), &mut word).then(|| u32::from_le_bytes(word))
        };
        let (pid, tgid) = (number(self.task.pid)?, number(self.task.tgid)?);
        let mut comm = [0; 16];
        cpu.read(task.wrapping_add(self.task.comm.into()), &mut comm);
        Some(Thread { task, pid, tgid, comm: text(&comm) })
    }

    /// A system call's first instruction is about to run; user code goes on where a register says.
    pub fn on_system(&mut self, board: &Board, cpu: &mut dyn Cpu) {
        self.threads.running().leave_user(cpu.register(Guest::SYSTEM_CALL_RETURN), board.call);
    }

    /// The running thread's program is being replaced; there is no way back to the old one.
    pub fn on_exec(&mut self) {
        self.threads.running().exec = true;
    }

    /// `iretq` in assembly code is about to run.
    pub fn on_interrupt_return(
        &mut self,
        board: &mut Board,
        rest: u64,
        cpu: &mut dyn Cpu,
    ) -> Result<(), Failure> {
        self.look_at_page_table(cpu);
        match self.threads.running().resume() {
            Some(call) => {
                board.call = call;
                self.emit(board, rest, Event::Resume)?;
                match self.planner.stack_pointer {
                    true => self.on_finished_return(board, rest, cpu),
                    false => Ok(()),
                }
            }
            None => {
                let traced = !self.planner.binaries.is_empty();
                let address = if traced { Guest::interrupt_return(cpu) } else { 0 };
                self.back_to_user(board, address, rest)
            }
        }
    }

    /// The kernel finishes a return that an interrupt came into, so that nobody can have a say in where it leads
    /// (`handle_interrupted_saferet`): the return address just below the stack to come has been used.
    fn on_finished_return(&mut self, board: &Board, rest: u64, cpu: &mut dyn Cpu) -> Result<(), Failure> {
        let Some(stack) = Guest::interrupt_return_stack(cpu) else { return Ok(()) };
        let running = self.threads.running();
        match running.frames_above_place(stack.wrapping_sub(8)) {
            Some(above) => {
                let result = running.ret_above(above);
                self.returned(board, rest, result, false)
            }
            None => Ok(()),
        }
    }

    /// `sysretq` is about to run.
    pub fn on_system_return(
        &mut self,
        board: &mut Board,
        rest: u64,
        cpu: &mut dyn Cpu,
    ) -> Result<(), Failure> {
        self.look_at_page_table(cpu);
        let address =
            if self.planner.binaries.is_empty() { 0 } else { cpu.register(Guest::SYSTEM_CALL_RETURN) };
        self.back_to_user(board, address, rest)
    }

    /// The thread goes back to user code, at `address` where user code is traced.
    fn back_to_user(&mut self, board: &mut Board, address: u64, rest: u64) -> Result<(), Failure> {
        let stack = self.threads.running();
        stack.clear();
        stack.in_user = true;
        board.call = stack.enter_user(address);
        let replaced = std::mem::take(&mut stack.exec);
        self.emit(board, rest, Event::Leave)?;
        if replaced {
            board.call = 1;
            let frames = self.threads.running().clear_user() as u32;
            self.unwound(board, rest, frames)?;
        }
        Ok(())
    }
}
