//! The module kgmon: every call of the functions that are chosen, by caller. `docs/kgmon.md` says what a count is.

use crate::options::CallCounts;
use crate::{Aggregate, Description, Error, Result, Source};
use kerntune_kgmon::{is_loaded, load, unload, Device, Entry, Start, Timer};

/// Return addresses are of the instruction after the call.
const CALL: u64 = 1;

/// The source. The module stops when this is dropped, and when its process ends in any way.
pub struct Kgmon {
    /// None once it is dropped.
    device: Option<Device>,
    /// Whether it was loaded for us.
    is_ours: bool,
    what: String,
    is_direct: bool,
    memory_bytes: usize,
}

impl Kgmon {
    /// Begins to count.
    ///
    /// # Errors
    /// [`Error::Kgmon`]: no module, or what the module or the kernel has against it.
    pub fn start(calls: &CallCounts) -> Result<Self> {
        let is_ours = !is_loaded();
        if is_ours {
            if let Some(obstacle) = kerntune_kgmon::obstacle() {
                return Err(obstacle.into());
            }
            match &calls.module {
                Some(Ok(module)) => load(module)?,
                Some(Err(why)) => return Err(Error::NoModule(why.clone())),
                None => {
                    return Err(Error::NoModule("the module kgmon is not loaded, and none was built".into()))
                }
            }
        }
        let mut new =
            Self { device: None, is_ours, what: calls.to_string(), is_direct: false, memory_bytes: 0 };
        let device = new.device.insert(Device::open()?);
        let before = device.status()?;
        if before.counting || before.timer != "off" {
            return Err(Error::NoModule(
                "kgmon is counting for somebody else: `echo stop > /dev/kgmon`, or wait for the other collector".into(),
            ));
        }
        let start = Start {
            filter: calls.only.clone(),
            except: calls.except.clone(),
            entry: Entry::Auto,
            timer: Timer::Off,
            hold: true,
            ..Start::default()
        };
        device.start(&start)?;
        // What was counted before, and while functions were still being told of us, is not wanted.
        device.take()?;
        let status = device.status()?;
        new.is_direct = status.entry == "direct";
        new.memory_bytes = usize::try_from(status.memory_bytes).unwrap_or(usize::MAX);
        Ok(new)
    }

    fn device(&self) -> Result<&Device> {
        self.device.as_ref().ok_or_else(|| Error::NoModule("kgmon was closed".into()))
    }
}

impl Source for Kgmon {
    fn description(&self) -> Description {
        let slow = "functions reach kgmon through ftrace's own trampoline, which costs several times as much: a BPF program \
                    sits directly on one of them, or the kernel is older than 6.8 and loses memory with the direct way";
        Description {
            name: format!("kgmon: calls of {}", self.what),
            calls: true,
            buffers: self.memory_bytes,
            lacks: if self.is_direct { Vec::new() } else { vec![slow.into()] },
            ..Description::default()
        }
    }

    fn drain(&mut self, _: &mut Aggregate) -> Result<()> {
        Ok(())
    }

    /// Every call is in exactly one of the dumps that are taken.
    fn count(&mut self, into: &mut Aggregate) -> Result<()> {
        let dump = self.device()?.take()?;
        for arc in &dump.arcs {
            let caller = into.table.lookup(arc.caller.saturating_sub(CALL));
            let callee = into.table.lookup(arc.callee);
            into.calls.add(caller, callee, arc.calls);
        }
        into.note("lost_calls", dump.lost_calls);
        into.note("ftrace_was_off", dump.stalled.into());
        into.note("modules_missed", dump.modules_missed.into());
        Ok(())
    }

    fn reset(&mut self) -> Result<()> {
        Ok(self.device()?.reset()?)
    }
}

impl Drop for Kgmon {
    fn drop(&mut self) {
        if let Some(device) = self.device.take() {
            let _ = device.stop();
            drop(device);
        }
        if self.is_ours {
            // Who has it open meanwhile keeps it.
            let _ = unload();
        }
    }
}
