//! When an instruction stream is written: between marks, at each instruction and access.

use crate::recorder::Recorder;
use crate::Failure;
use kerntune_trace::stream::Step;

impl Recorder {
    /// Regions began or ended.
    pub(crate) fn stream_follows(&mut self) {
        let Some(stream) = &mut self.planner.stream else { return };
        let mut open = self.regions.open().filter_map(|region| self.regions.list.get(region as usize));
        stream.is_open = match &stream.spec.region {
            Some(name) => open.any(|region| region.name == *name),
            None => open.next().is_some(),
        };
    }

    /// The instruction of this number is about to run.
    #[inline]
    pub fn on_insn(&mut self, code: u32) -> Result<(), Failure> {
        match &mut self.planner.stream {
            Some(stream) if stream.is_open => stream.execute(code),
            _ => Ok(()),
        }
    }

    /// It has read or written memory.
    #[inline]
    pub fn on_touch(&mut self, store: bool, address: u64) -> Result<(), Failure> {
        match &mut self.planner.stream {
            Some(stream) if stream.is_open && stream.executed > 0 => {
                let step = if store { Step::Write(address) } else { Step::Read(address) };
                Ok(step.write(&mut stream.out)?)
            }
            _ => Ok(()),
        }
    }
}
