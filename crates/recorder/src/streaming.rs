//! Recording of the instruction stream at marks, instructions and accesses.

use crate::recorder::Recorder;
use crate::Failure;
use kerntune_trace::stream::StreamRecord;

impl Recorder {
    /// Handles a change of the open regions.
    pub(crate) fn stream_follows(&mut self) {
        let Some(stream) = &mut self.planner.stream else { return };
        let mut open = self.regions.open().filter_map(|region| self.regions.list.get(region as usize));
        stream.is_open = match &stream.spec.region {
            Some(name) => open.any(|region| region.name == *name),
            None => open.next().is_some(),
        };
    }

    /// Handles the instruction with this number, before it runs.
    #[inline]
    pub fn on_insn(&mut self, code: u32) -> Result<(), Failure> {
        match &mut self.planner.stream {
            Some(stream) if stream.is_open => stream.execute(code),
            _ => Ok(()),
        }
    }

    /// Handles a memory access of the last instruction.
    #[inline]
    pub fn on_touch(&mut self, store: bool, address: u64) -> Result<(), Failure> {
        match &mut self.planner.stream {
            Some(stream) if stream.is_open && stream.executed > 0 => {
                let step = if store { StreamRecord::Write(address) } else { StreamRecord::Read(address) };
                Ok(step.write(&mut stream.out)?)
            }
            _ => Ok(()),
        }
    }
}
