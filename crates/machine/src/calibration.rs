//! Presets what the kernel would measure at boot: the APIC timer's frequency, and with several CPUs
//! the speed of delay loops.
//!
//! The loop speed goes onto the command line. To measure the timer, a kernel waits for two tenths
//! of a second, in loops of `pause` each of which leaves QEMU's translated code: four fifths of the
//! time of a short run. Hypervisors tell their guests; QEMU can do so only with KVM. So QEMU's gdb
//! server stops the kernel where it would begin to measure, and writes the value into the variable
//! that the kernel checks first. The kernel stops at an instruction, and no virtual time passes.
//!
//! The protocol is in gdb's manual, "Remote Serial Protocol". It runs over QEMU's standard input,
//! one end of a socket.

use crate::{Error, Result};
use kerntune_isa::{BootMeasurement, GuestIsa, Isa};
use kerntune_kernel::Kernel;
use kerntune_work::IoContext;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::thread::JoinHandle;

/// A value to write into a kernel variable when the kernel reaches `stop`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct VariablePatch {
    stop: u64,
    variable: u64,
    value: u32,
}

/// A patch to apply to one run.
pub(crate) struct PendingPatch {
    /// Standard input for QEMU.
    stdin: OwnedFd,
    ours: UnixStream,
    patch: VariablePatch,
}

/// Adds options that make QEMU wait for the patch. Returns `None` if the kernel lacks the variable,
/// and therefore measures.
///
/// # Errors
/// A kernel whose files cannot be read.
pub(crate) fn prepare_patch(kernel: &Kernel, command: &mut Command) -> Result<Option<PendingPatch>> {
    let Some(patch) = find_patch(kernel)? else { return Ok(None) };
    let (ours, theirs) = UnixStream::pair().at("make a socket for", kernel.image())?;
    command.args(["-S", "-chardev", "socket,id=gdb,fd=0", "-gdb", "chardev:gdb"]);
    Ok(Some(PendingPatch { stdin: theirs.into(), ours, patch }))
}

/// Returns the command line option with the loop speed of CPUs after the first, whose speed the
/// kernel knows from its clock.
///
/// # Errors
/// A configuration that cannot be read.
pub(crate) fn command_line(kernel: &Kernel, cpus: u32) -> Result<String> {
    if cpus == 1 {
        return Ok(String::new());
    }
    Ok(period(kernel)?.map(|period| format!(" lpj={period}")).unwrap_or_default())
}

/// Nanoseconds of a tick; timer and TSC count nanoseconds.
fn period(kernel: &Kernel) -> Result<Option<u32>> {
    let path = kernel.config();
    let config = fs::read_to_string(&path).at("read", &path)?;
    let ticks = config.lines().find_map(|line| line.strip_prefix("CONFIG_HZ=")?.parse().ok());
    Ok(ticks.and_then(|ticks: u32| GuestIsa::MEASURED.hertz.checked_div(ticks)))
}

fn find_patch(kernel: &Kernel) -> Result<Option<VariablePatch>> {
    let BootMeasurement { stop, variable, hertz: _ } = GuestIsa::MEASURED;
    let functions = kernel.symbols()?;
    let stop = functions.functions().iter().find(|function| function.name == stop);
    let variable = kernel.variables()?.into_iter().find(|(_, size, name)| name == variable && *size == 4);
    Ok(match (stop, variable, period(kernel)?) {
        (Some(stop), Some((variable, ..)), Some(value)) => {
            Some(VariablePatch { stop: stop.address, variable, value })
        }
        _ => None,
    })
}

impl PendingPatch {
    /// Starts a thread that applies the patch when the kernel gets there. The thread ends with QEMU
    /// at the latest.
    pub(crate) fn start(self) -> (OwnedFd, JoinHandle<io::Result<()>>) {
        let Self { stdin, ours, patch } = self;
        (stdin, std::thread::spawn(move || GdbConnection { stream: ours, read: Vec::new() }.apply(patch)))
    }
}

/// Returns the thread's result; ignores that QEMU ended, which QEMU reports itself.
///
/// # Errors
/// [`Error::Qemu`] if the gdb server answered unexpectedly.
pub(crate) fn finish(thread: JoinHandle<io::Result<()>>) -> Result<()> {
    match thread.join() {
        Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => {
            Err(Error::Qemu { status: "its server for gdb".into(), message: error.to_string() })
        }
        _ => Ok(()),
    }
}

struct GdbConnection {
    stream: UnixStream,
    read: Vec<u8>,
}

impl GdbConnection {
    fn apply(mut self, VariablePatch { stop, variable, value }: VariablePatch) -> io::Result<()> {
        let result = self.write_variable(stop, variable, value);
        if result.is_err() {
            // Otherwise the stopped guest would only be noticed at the time limit.
            let _ = self.send("k");
        }
        result
    }

    fn write_variable(&mut self, stop: u64, variable: u64, value: u32) -> io::Result<()> {
        let bytes: String = value.to_le_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        self.ask(&format!("Z1,{stop:x},1"), "OK")?;
        self.ask("c", "T05")?;
        self.ask(&format!("M{variable:x},4:{bytes}"), "OK")?;
        self.ask(&format!("z1,{stop:x},1"), "OK")?;
        self.ask("D", "OK")
    }

    /// Sends a packet and checks the beginning of the answer.
    fn ask(&mut self, packet: &str, expected: &str) -> io::Result<()> {
        self.send(packet)?;
        let answer = self.packet()?;
        match answer.first() {
            _ if answer.starts_with(expected.as_bytes()) => Ok(()),
            // The kernel died before, and the console says why.
            Some(b'W' | b'X') => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => {
                let answer = String::from_utf8_lossy(&answer).into_owned();
                let what = format!("it answers {answer:?} to {packet:?}, and not {expected:?}");
                Err(io::Error::new(io::ErrorKind::InvalidData, what))
            }
        }
    }

    fn send(&mut self, packet: &str) -> io::Result<()> {
        let sum = packet.bytes().fold(0u8, u8::wrapping_add);
        self.stream.write_all(format!("${packet}#{sum:02x}").as_bytes())
    }

    /// Reads the next packet, `$data#sum` with or without an acknowledgment, and returns its data.
    fn packet(&mut self) -> io::Result<Vec<u8>> {
        loop {
            let begin = self.read.iter().position(|byte| *byte == b'$');
            let end = self.read.iter().position(|byte| *byte == b'#');
            if let (Some(begin), Some(end)) = (begin, end) {
                if begin < end && end + 2 < self.read.len() {
                    let packet = self.read[begin + 1..end].to_vec();
                    self.read.drain(..end + 3);
                    self.stream.write_all(b"+")?;
                    return Ok(packet);
                }
            }
            let mut some = [0; 256];
            match self.stream.read(&mut some)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                // Expected answers are much shorter.
                _ if self.read.len() > 4096 => return Err(io::ErrorKind::InvalidData.into()),
                count => self.read.extend_from_slice(&some[..count]),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Applies a patch to a server with these answers; returns the result and the packets sent.
    fn talk(answers: &'static [&'static str]) -> (io::Result<()>, String) {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let server = std::thread::spawn(move || {
            let mut sent = Vec::new();
            for answer in answers {
                let mut packet = [0; 256];
                // Until a packet's checksum has come.
                while !sent.iter().rev().take(3).any(|byte| *byte == b'#') {
                    let count = theirs.read(&mut packet).unwrap();
                    sent.extend_from_slice(&packet[..count]);
                }
                sent.push(b'\n');
                // In pieces.
                theirs.write_all(b"+$").unwrap();
                theirs.write_all(format!("{answer}#00").as_bytes()).unwrap();
            }
            drop(theirs.read(&mut [0; 256]));
            String::from_utf8_lossy(&sent).replace('+', "")
        });
        let patch =
            VariablePatch { stop: 0xffff_ffff_81cb_dbc0, variable: 0xffff_ffff_81d6_7f44, value: 4_000_000 };
        let result = GdbConnection { stream: ours, read: Vec::new() }.apply(patch);
        (result, server.join().unwrap())
    }

    #[test]
    fn the_kernel_is_stopped_told_and_let_go() {
        let (result, sent) = talk(&["OK", "T05thread:01;", "OK", "OK", "OK"]);
        result.unwrap();
        let lines = [
            "$Z1,ffffffff81cbdbc0,1#",
            "$c#63",
            "$Mffffffff81d67f44,4:00093d00#",
            "$z1,ffffffff81cbdbc0,1#",
            "$D#44",
        ];
        assert!(lines.iter().zip(sent.lines()).all(|(line, sent)| sent.starts_with(line)), "{sent}");
    }

    #[test]
    fn an_answer_that_is_none_is_an_error_and_an_end_is_none() {
        let (result, _) = talk(&["OK", "E22"]);
        let error = result.unwrap_err();
        assert!(error.to_string().contains("answers \"E22\" to \"c\""), "{error}");
        let failed = std::thread::spawn(move || Err(error));
        assert!(matches!(finish(failed), Err(Error::Qemu { .. })));
        for answers in [&["OK"][..], &["OK", "W00"]] {
            let (result, _) = talk(answers);
            assert!(finish(std::thread::spawn(move || result)).is_ok(), "{answers:?}");
        }
    }
}
