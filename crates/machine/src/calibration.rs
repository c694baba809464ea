//! What the kernel would measure when it boots, told to it instead: how fast the timer of the APIC is, and of several CPUs
//! how long loops take that wait.
//!
//! The latter it takes from its command line. Of the timer, a kernel that is not told waits for two tenths of a second, in
//! loops of `pause` each of which leaves QEMU's translated code: four fifths of what a short run takes. Hypervisors tell their
//! guests; QEMU has no way to do so without KVM. So the kernel is stopped where it would begin to measure, by QEMU's server for
//! gdb, and finds the answer in the variable in which it looks for one first. It is stopped at an instruction, and no virtual
//! time passes meanwhile.
//!
//! The protocol is that of gdb's manual, "Remote Serial Protocol", and runs over QEMU's standard input, one end of a socket.

use crate::{Error, Result};
use kerntune_isa::{Guest, Isa, Measured};
use kerntune_kernel::Kernel;
use kerntune_work::IoContext;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::thread::JoinHandle;

/// Where a kernel stops, and what it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Told {
    stop: u64,
    variable: u64,
    value: u32,
}

/// The answer on its way to one run.
pub(crate) struct Answer {
    /// QEMU's standard input.
    stdin: OwnedFd,
    ours: UnixStream,
    told: Told,
}

/// Has QEMU wait for the answer. None if the kernel does not have that variable: it measures.
///
/// # Errors
/// A kernel whose files cannot be read.
pub(crate) fn answer(kernel: &Kernel, command: &mut Command) -> Result<Option<Answer>> {
    let Some(told) = told(kernel)? else { return Ok(None) };
    let (ours, theirs) = UnixStream::pair().at("make a socket for", kernel.bzimage())?;
    command.args(["-S", "-chardev", "socket,id=gdb,fd=0", "-gdb", "chardev:gdb"]);
    Ok(Some(Answer { stdin: theirs.into(), ours, told }))
}

/// What the kernel is told on its command line for each CPU after the first, which knows it from its clock.
///
/// # Errors
/// A configuration that cannot be read.
pub(crate) fn command_line(kernel: &Kernel, cpus: u32) -> Result<String> {
    if cpus == 1 {
        return Ok(String::new());
    }
    Ok(period(kernel)?.map(|period| format!(" lpj={period}")).unwrap_or_default())
}

/// Nanoseconds, which is what the timer and the TSC count, of a tick.
fn period(kernel: &Kernel) -> Result<Option<u32>> {
    let path = kernel.config();
    let config = fs::read_to_string(&path).at("read", &path)?;
    let ticks = config.lines().find_map(|line| line.strip_prefix("CONFIG_HZ=")?.parse().ok());
    Ok(ticks.and_then(|ticks: u32| Guest::MEASURED.hertz.checked_div(ticks)))
}

fn told(kernel: &Kernel) -> Result<Option<Told>> {
    let Measured { stop, variable, hertz: _ } = Guest::MEASURED;
    let functions = kernel.symbols()?;
    let stop = functions.functions().iter().find(|function| function.name == stop);
    let variable = kernel.variables()?.into_iter().find(|(_, size, name)| name == variable && *size == 4);
    Ok(match (stop, variable, period(kernel)?) {
        (Some(stop), Some((variable, ..)), Some(value)) => Some(Told { stop: stop.address, variable, value }),
        _ => None,
    })
}

impl Answer {
    /// Gives it when the kernel asks. The thread ends with QEMU at the latest.
    pub(crate) fn give(self) -> (OwnedFd, JoinHandle<io::Result<()>>) {
        let Self { stdin, ours, told } = self;
        (stdin, std::thread::spawn(move || Conversation { stream: ours, read: Vec::new() }.hold(told)))
    }
}

/// What became of it. QEMU that ended before says so itself.
///
/// # Errors
/// [`Error::Qemu`] if it did not understand.
pub(crate) fn given(thread: JoinHandle<io::Result<()>>) -> Result<()> {
    match thread.join() {
        Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => {
            Err(Error::Qemu { status: "its server for gdb".into(), message: error.to_string() })
        }
        _ => Ok(()),
    }
}

struct Conversation {
    stream: UnixStream,
    read: Vec<u8>,
}

impl Conversation {
    fn hold(mut self, Told { stop, variable, value }: Told) -> io::Result<()> {
        let result = self.tell(stop, variable, value);
        if result.is_err() {
            // A guest that stands still would only be noticed when its time is up.
            let _ = self.send("k");
        }
        result
    }

    fn tell(&mut self, stop: u64, variable: u64, value: u32) -> io::Result<()> {
        let bytes: String = value.to_le_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        self.ask(&format!("Z1,{stop:x},1"), "OK")?;
        self.ask("c", "T05")?;
        self.ask(&format!("M{variable:x},4:{bytes}"), "OK")?;
        self.ask(&format!("z1,{stop:x},1"), "OK")?;
        self.ask("D", "OK")
    }

    /// Sends a packet; its answer has to begin so.
    fn ask(&mut self, packet: &str, expected: &str) -> io::Result<()> {
        self.send(packet)?;
        let answer = self.packet()?;
        match answer.first() {
            _ if answer.starts_with(expected.as_bytes()) => Ok(()),
            // The kernel died on the way there, and its console says of what.
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

    /// The next packet, `$data#sum` after an acknowledgement or none, without the frame.
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
                // No answer of ours is as long.
                _ if self.read.len() > 4096 => return Err(io::ErrorKind::InvalidData.into()),
                count => self.read.extend_from_slice(&some[..count]),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that gives these answers, in turn; what it was sent.
    fn talk(answers: &'static [&'static str]) -> (io::Result<()>, String) {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let server = std::thread::spawn(move || {
            let mut sent = Vec::new();
            for answer in answers {
                let mut packet = [0; 256];
                // Until a packet's sum has come.
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
        let told = Told { stop: 0xffff_ffff_81cb_dbc0, variable: 0xffff_ffff_81d6_7f44, value: 4_000_000 };
        let result = Conversation { stream: ours, read: Vec::new() }.hold(told);
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
        assert!(matches!(given(failed), Err(Error::Qemu { .. })));
        for answers in [&["OK"][..], &["OK", "W00"]] {
            let (result, _) = talk(answers);
            assert!(given(std::thread::spawn(move || result)).is_ok(), "{answers:?}");
        }
    }
}
