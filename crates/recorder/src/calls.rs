//! Calls, returns and context switches: updates the shadow stacks and emits their events.

use crate::inline_counters::InlineCounters;
use crate::marks::text;
use crate::plan::JumpLanding;
use crate::recorder::Recorder;
use crate::threads::PoppedFrames;
use crate::Failure;
use kerntune_isa::{ForgottenTranslations, GuestIsa, Isa, StoppedCpu};
use kerntune_trace::{EnterKind, Event, FunctionKind, RecordedThread};

impl Recorder {
    /// Handles the first instruction of `function`, with `rest` instructions left in its block.
    pub fn on_entry(&mut self, board: &mut InlineCounters, function: u32, rest: u64) -> Result<(), Failure> {
        if self.planner.functions.is_user(function) {
            return self.on_user_entry(board, function, rest);
        }
        match self.entered(board, function, rest)? {
            Some(how) => {
                self.threads.running().push(function, how);
                self.emit(board, rest, Event::Enter { function, how })
            }
            None => Ok(()),
        }
    }

    /// Works like [`Self::on_entry`] for a plain kernel function, mostly called.
    #[inline]
    pub fn on_plain_entry(
        &mut self,
        board: &mut InlineCounters,
        function: u32,
        rest: u64,
    ) -> Result<(), Failure> {
        if board.call == 0 {
            return self.on_entry(board, function, rest);
        }
        board.call = 0;
        self.threads.running().push(function, EnterKind::Call);
        self.emit_kernel_call(board, rest, function)
    }

    /// Returns the way in which a kernel function is entered, according to the call flag; `None` if
    /// this is no entry.
    #[inline]
    fn entered(
        &mut self,
        board: &mut InlineCounters,
        function: u32,
        rest: u64,
    ) -> Result<Option<EnterKind>, Failure> {
        let kind = self.planner.functions.kind(function);
        let stack = self.threads.running();
        if kind == FunctionKind::Label && board.call == 0 && (stack.in_user || !stack.kernel_is_empty()) {
            // Assembly code runs through the label on behalf of the function below.
            return Ok(None);
        }
        let call = std::mem::take(&mut board.call);
        Ok(Some(match kind {
            FunctionKind::Label if call == 0 => EnterKind::Jump,
            FunctionKind::Label => EnterKind::Call,
            FunctionKind::Interrupt | FunctionKind::Exception => {
                stack.in_user = false;
                stack.interrupted_calls.push(call);
                if kind == FunctionKind::Interrupt {
                    EnterKind::Interrupt
                } else {
                    EnterKind::Exception
                }
            }
            FunctionKind::Syscall => {
                stack.in_user = false;
                let frames = stack.clear() as u32;
                self.unwound(board, rest, frames)?;
                EnterKind::Syscall
            }
            FunctionKind::Plain
            | FunctionKind::SwitchTo
            | FunctionKind::Thunk
            | FunctionKind::ReturnThunk
            | FunctionKind::Exec
            | FunctionKind::Part(_) => {
                if call != 0 {
                    EnterKind::Call
                } else if stack.frames.last().is_some_and(|&(top, _)| top == function) {
                    return Ok(None); // a loop back to the function's first instruction
                } else {
                    EnterKind::Jump
                }
            }
        }))
    }

    /// Records frames that ended without a return of their own.
    fn unwound(&mut self, board: &InlineCounters, rest: u64, frames: u32) -> Result<(), Failure> {
        if frames == 0 {
            return Ok(());
        }
        if self.recording {
            self.health.unwound_frames += u64::from(frames);
        }
        self.emit(board, rest, Event::Unwind { frames })
    }

    /// Works like [`Self::on_entry`], but the stack pointer decides whether `function` was called:
    /// retpolines enter functions by `ret`.
    ///
    /// At a function's entry its return address is on top of the stack. If an open function has its
    /// return address at the same place, that function jumped here, and the frames above it have
    /// ended.
    pub fn on_entry_at(
        &mut self,
        board: &mut InlineCounters,
        function: u32,
        rest: u64,
        cpu: &mut dyn StoppedCpu,
    ) -> Result<(), Failure> {
        use FunctionKind::{Exception, Interrupt, Label, Syscall};
        let (kind, mut place) =
            (self.planner.functions.kind(function), cpu.register(GuestIsa::STACK_POINTER));
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
                    EnterKind::Jump
                }
                None => EnterKind::Call,
            }
        };
        self.threads.running().push_at(function, how, place);
        self.emit(board, rest, Event::Enter { function, how })
    }

    fn on_user_entry(&mut self, board: &mut InlineCounters, function: u32, rest: u64) -> Result<(), Failure> {
        let call = std::mem::take(&mut board.call);
        let stack = self.threads.running();
        // Open kernel frames mean that the thread returned to user code in a way that was not seen.
        let frames = stack.clear() as u32;
        self.unwound(board, rest, frames)?;
        let stack = self.threads.running();
        let how = if call != 0 { EnterKind::Call } else { EnterKind::Jump };
        if how == EnterKind::Jump && stack.frames.last().is_some_and(|&(top, _)| top == function) {
            return Ok(());
        }
        stack.push_user(function, how);
        self.emit(board, rest, Event::Enter { function, how })
    }

    /// Handles a `ret` inside `function`.
    #[inline]
    pub fn on_return(&mut self, board: &InlineCounters, function: u32, rest: u64) -> Result<(), Failure> {
        let functions = &self.planner.functions;
        if !functions.is_selection() && self.threads.running().ret_called(function) {
            return self.emit_exit(board, rest);
        }
        self.on_other_return(board, function, rest)
    }

    /// Handles a `ret` that may end more or less than the innermost frame.
    #[inline(never)]
    fn on_other_return(&mut self, board: &InlineCounters, function: u32, rest: u64) -> Result<(), Failure> {
        let functions = &self.planner.functions;
        let user = functions.is_user(function);
        let result = self.threads.running().ret(function, user);
        self.returned(board, rest, result, user)
    }

    /// Works like [`Self::on_return`], but the stack pointer decides which function returns:
    /// retpolines jump by `ret`, and functions return by a jump to a thunk.
    ///
    /// If no function has its return address at this place, assembly code moved it, or the function
    /// called a place inside itself to train the CPU's return stack.
    pub fn on_return_at(
        &mut self,
        board: &mut InlineCounters,
        rest: u64,
        cpu: &mut dyn StoppedCpu,
    ) -> Result<(), Failure> {
        let functions = &self.planner.functions;
        let place = cpu.register(GuestIsa::STACK_POINTER);
        let stack = self.threads.running();
        let above = stack.frames_above_place(place).or_else(|| {
            let &(top, how) = stack.frames.last()?;
            let mut word = [0; 8];
            let to = cpu.read(place, &mut word).then(|| u64::from_le_bytes(word));
            match functions.kind(top) {
                // A retpoline's `ret` may also jump to a thunk.
                _ if to.is_some_and(|to| functions.starting(to).is_some()) => None,
                _ if to.is_some_and(|to| functions.containing(to) == top) => None,
                FunctionKind::Label if how == EnterKind::Call => Some(0),
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

    /// Records the frames that a return popped.
    fn returned(
        &mut self,
        board: &InlineCounters,
        rest: u64,
        result: PoppedFrames,
        user: bool,
    ) -> Result<(), Failure> {
        if self.recording {
            self.health.foreign_returns += u64::from(result.foreign);
            let unmatched = u64::from(!result.popped);
            match user {
                true => self.health.headless_returns += unmatched,
                false => self.health.unmatched_returns += unmatched,
            }
            self.ended(board, rest, result)?;
        }
        self.emit_lock_waits(board, rest)?;
        self.keep_root(board, user, rest)
    }

    /// Handles a jump of traced code, of the kernel or of user code, to untraced code.
    pub fn on_left(&mut self, board: &mut InlineCounters, user: bool, rest: u64) -> Result<(), Failure> {
        board.call = 1;
        let result = self.threads.running().left(user);
        if self.recording {
            self.ended(board, rest, result)?;
        }
        self.keep_root(board, user, rest)
    }

    /// Handles a jump of traced kernel code to an address in a register or in memory.
    pub fn on_indirect(
        &mut self,
        board: &mut InlineCounters,
        jump: u32,
        rest: u64,
        cpu: &mut dyn StoppedCpu,
    ) -> Result<(), Failure> {
        let jump = self.planner.jumps.get(jump as usize);
        match jump.and_then(|jump| GuestIsa::jump_target(jump, cpu)).map(|to| self.planner.landing(to)) {
            Some(JumpLanding::Left) => return self.on_left(board, false, rest),
            Some(JumpLanding::Through) => board.call = 1,
            Some(JumpLanding::Traced) => board.call = 0,
            None => {
                board.call = 0;
                self.health.lost_jumps += u64::from(self.recording);
            }
        }
        Ok(())
    }

    /// Returns the call flag at power-on.
    pub fn first_call(&self) -> u64 {
        u64::from(self.planner.functions.is_selection())
    }

    fn ended(&mut self, board: &InlineCounters, rest: u64, result: PoppedFrames) -> Result<(), Failure> {
        if result.unwound != 0 {
            // The stack is already in its state after the exit, so no chunk may begin in between.
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

    /// If functions are selected, gives a kernel thread without open functions a frame that stands
    /// for all untraced code and receives its time.
    fn keep_root(&mut self, board: &InlineCounters, user: bool, rest: u64) -> Result<(), Failure> {
        if user || !self.planner.functions.is_selection() {
            return Ok(());
        }
        let function = self.planner.functions.unknown();
        let stack = self.threads.running();
        if !stack.kernel_is_empty() {
            return Ok(());
        }
        stack.push_root(function);
        self.emit(board, rest, Event::Enter { function, how: EnterKind::Jump })
    }

    /// Handles `__switch_to_asm(prev, next)`, which is `function`.
    pub fn on_switch(
        &mut self,
        board: &mut InlineCounters,
        function: u32,
        rest: u64,
        cpu: &mut dyn StoppedCpu,
    ) -> Result<(), Failure> {
        match self.planner.stack_pointer {
            true => self.on_entry_at(board, function, rest, cpu)?,
            false => self.on_entry(board, function, rest)?,
        }
        self.booting = false;
        self.look_at_page_table(cpu);
        let [prev, next] = GuestIsa::ARGUMENTS.map(|register| cpu.register(register));
        if let Some(thread) = self.identify(prev, cpu) {
            self.threads.identify_running(thread);
        }
        let several = self.cpus.count() > 1;
        if several {
            self.thread_leaves_cpu(board, prev, rest, cpu);
        }
        let next = self.identify(next, cpu).unwrap_or(RecordedThread {
            task: next,
            pid: u32::MAX,
            tgid: u32::MAX,
            comm: "[unreadable]".into(),
        });
        let thread = self.threads.switch(next);
        self.on_forget(ForgottenTranslations::User);
        self.emit(board, rest, Event::Switch { thread })?;
        if several {
            self.thread_gets_cpu(board, rest)?;
        }
        Ok(())
    }

    pub(crate) fn identify(&self, task: u64, cpu: &mut dyn StoppedCpu) -> Option<RecordedThread> {
        let mut number = |offset: u32| {
            let mut word = [0; 4];
            cpu.read(task.wrapping_add(offset.into()), &mut word).then(|| u32::from_le_bytes(word))
        };
        let (pid, tgid) = (number(self.task.pid)?, number(self.task.tgid)?);
        let mut comm = [0; 16];
        cpu.read(task.wrapping_add(self.task.comm.into()), &mut comm);
        Some(RecordedThread { task, pid, tgid, comm: text(&comm) })
    }

    /// Handles the first instruction of a system call. A register holds the user address that it
    /// returns to.
    pub fn on_system(&mut self, board: &InlineCounters, cpu: &mut dyn StoppedCpu) {
        self.threads.running().leave_user(cpu.register(GuestIsa::SYSTEM_CALL_RETURN), board.call);
    }

    /// Notes that the running thread's program is being replaced and will not be returned to.
    pub fn on_exec(&mut self) {
        self.threads.running().exec = true;
    }

    /// Handles an `iretq` in assembly code.
    pub fn on_interrupt_return(
        &mut self,
        board: &mut InlineCounters,
        rest: u64,
        cpu: &mut dyn StoppedCpu,
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
                let address = if traced { GuestIsa::interrupt_return(cpu) } else { 0 };
                self.back_to_user(board, address, rest)
            }
        }
    }

    /// Handles a return that an interrupt split and the kernel then finishes safely
    /// (`handle_interrupted_saferet`). The return address just below the new stack pointer has been
    /// used.
    fn on_finished_return(
        &mut self,
        board: &InlineCounters,
        rest: u64,
        cpu: &mut dyn StoppedCpu,
    ) -> Result<(), Failure> {
        let Some(stack) = GuestIsa::interrupt_return_stack(cpu) else { return Ok(()) };
        let running = self.threads.running();
        match running.frames_above_place(stack.wrapping_sub(8)) {
            Some(above) => {
                let result = running.ret_above(above);
                self.returned(board, rest, result, false)
            }
            None => Ok(()),
        }
    }

    /// Handles a `sysretq`.
    pub fn on_system_return(
        &mut self,
        board: &mut InlineCounters,
        rest: u64,
        cpu: &mut dyn StoppedCpu,
    ) -> Result<(), Failure> {
        self.look_at_page_table(cpu);
        let address =
            if self.planner.binaries.is_empty() { 0 } else { cpu.register(GuestIsa::SYSTEM_CALL_RETURN) };
        self.back_to_user(board, address, rest)
    }

    /// Returns the thread to user code, at `address` if user code is traced.
    fn back_to_user(&mut self, board: &mut InlineCounters, address: u64, rest: u64) -> Result<(), Failure> {
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
