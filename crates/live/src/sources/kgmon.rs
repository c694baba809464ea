//! Kernel module kgmon: counts every call of the selected functions, by caller. `docs/kgmon.md`
//! defines a count.

use crate::options::CallCountOptions;
use crate::{Aggregate, Error, Result, Source, SourceDescription};
use kerntune_kgmon::{is_loaded, load, unload, EntryMode, KgmonDevice, StartCommand, TimerMode};
use kerntune_profile::Anomaly;

/// Offset from a return address into the call instruction before it.
const CALL_OFFSET: u64 = 1;

/// Source of call counts from kgmon. The module stops when this is dropped, and when the process
/// ends in any way.
pub struct KgmonSource {
    /// Open device; `None` after the drop.
    device: Option<KgmonDevice>,
    /// True if the module was loaded by this source.
    is_ours: bool,
    what: String,
    is_direct: bool,
    memory_bytes: usize,
}

impl KgmonSource {
    /// Starts counting.
    ///
    /// # Errors
    /// [`Error::Kgmon`] if the module is missing, or the module or the kernel refuses.
    pub fn start(calls: &CallCountOptions) -> Result<Self> {
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
        let device = new.device.insert(KgmonDevice::open()?);
        let before = device.status()?;
        if before.counting || before.timer != "off" {
            return Err(Error::NoModule(
                "kgmon is counting for somebody else: `echo stop > /dev/kgmon`, or wait for the other collector".into(),
            ));
        }
        let start = StartCommand {
            filter: calls.only.clone(),
            except: calls.except.clone(),
            entry: EntryMode::Auto,
            timer: TimerMode::Off,
            hold: true,
            ..StartCommand::default()
        };
        device.start(&start)?;
        // Discard earlier counts, and those made while the functions were still being registered.
        device.take()?;
        let status = device.status()?;
        new.is_direct = status.entry == "direct";
        new.memory_bytes = usize::try_from(status.memory_bytes).unwrap_or(usize::MAX);
        Ok(new)
    }

    fn device(&self) -> Result<&KgmonDevice> {
        self.device.as_ref().ok_or_else(|| Error::NoModule("kgmon was closed".into()))
    }
}

impl Source for KgmonSource {
    fn description(&self) -> SourceDescription {
        let slow = "functions reach kgmon through ftrace's own trampoline, which costs several times as much: a BPF program \
                    sits directly on one of them, or the kernel is older than 6.8 and loses memory with the direct way";
        SourceDescription {
            name: format!("kgmon: calls of {}", self.what),
            calls: true,
            buffers: self.memory_bytes,
            lacks: if self.is_direct { Vec::new() } else { vec![slow.into()] },
            ..SourceDescription::default()
        }
    }

    fn drain(&mut self, _: &mut Aggregate) -> Result<()> {
        Ok(())
    }

    /// Each call is in exactly one dump.
    fn flush_counts(&mut self, into: &mut Aggregate) -> Result<()> {
        let dump = self.device()?.take()?;
        for arc in &dump.arcs {
            let caller = into.table.lookup(arc.caller.saturating_sub(CALL_OFFSET));
            let callee = into.table.lookup(arc.callee);
            into.calls.add(caller, callee, arc.calls);
        }
        into.note(Anomaly::LostCalls, dump.lost_calls);
        into.note(Anomaly::FtraceWasOff, dump.stalled.into());
        into.note(Anomaly::ModulesMissed, dump.modules_missed.into());
        Ok(())
    }

    fn reset(&mut self) -> Result<()> {
        Ok(self.device()?.reset()?)
    }
}

impl Drop for KgmonSource {
    fn drop(&mut self) {
        if let Some(device) = self.device.take() {
            let _ = device.stop();
            drop(device);
        }
        if self.is_ours {
            // If somebody else has the device open, the module stays loaded.
            let _ = unload();
        }
    }
}
