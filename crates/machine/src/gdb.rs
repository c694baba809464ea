//! A client of QEMU's server for gdb.
//!
//! The protocol is in gdb's manual, "Remote Serial Protocol".

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

/// Connection to a stopped guest.
pub(crate) struct GdbConnection {
    stream: UnixStream,
    read: Vec<u8>,
}

impl GdbConnection {
    pub(crate) fn new(stream: UnixStream) -> Self {
        Self { stream, read: Vec::new() }
    }

    /// Makes the guest stop when it is about to execute the instruction at an address.
    ///
    /// # Errors
    /// As all functions here: [`io::ErrorKind::InvalidData`] for an unexpected answer,
    /// [`io::ErrorKind::UnexpectedEof`] if the guest ended.
    pub(crate) fn add_breakpoint(&mut self, address: u64) -> io::Result<()> {
        self.expect(&format!("Z1,{address:x},1"), "OK")
    }

    /// Removes a breakpoint.
    pub(crate) fn remove_breakpoint(&mut self, address: u64) -> io::Result<()> {
        self.expect(&format!("z1,{address:x},1"), "OK")
    }

    /// Lets the guest run to a breakpoint.
    pub(crate) fn run(&mut self) -> io::Result<()> {
        self.expect("c", "T05")
    }

    /// Writes to a virtual address, also to read-only pages.
    pub(crate) fn set_memory(&mut self, address: u64, bytes: &[u8]) -> io::Result<()> {
        self.expect(&format!("M{address:x},{:x}:{}", bytes.len(), hex(bytes)), "OK")
    }

    /// Reads a register of 64 bits by gdb's number.
    pub(crate) fn register(&mut self, number: u32) -> io::Result<u64> {
        let packet = format!("p{number:x}");
        let answer = self.ask(&packet)?;
        let value = little_endian(&answer);
        value.ok_or_else(|| unexpected(&packet, &answer, "a register of 64 bits"))
    }

    /// Writes a register of 64 bits.
    pub(crate) fn set_register(&mut self, number: u32, value: u64) -> io::Result<()> {
        self.expect(&format!("P{number:x}={}", hex(&value.to_le_bytes())), "OK")
    }

    /// Lets the guest run on without this client.
    pub(crate) fn detach(&mut self) -> io::Result<()> {
        self.expect("D", "OK")
    }

    /// Ends the guest.
    pub(crate) fn kill(&mut self) -> io::Result<()> {
        self.send("k")
    }

    /// Sends a packet and checks the beginning of the answer.
    fn expect(&mut self, packet: &str, expected: &str) -> io::Result<()> {
        let answer = self.ask(packet)?;
        match answer.starts_with(expected.as_bytes()) {
            true => Ok(()),
            false => Err(unexpected(packet, &answer, &format!("{expected:?}"))),
        }
    }

    /// Sends a packet and returns the answer.
    fn ask(&mut self, packet: &str) -> io::Result<Vec<u8>> {
        self.send(packet)?;
        let answer = self.packet()?;
        match answer.first() {
            // The kernel died before, and the console says why.
            Some(b'W' | b'X') => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(answer),
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

fn unexpected(packet: &str, answer: &[u8], expected: &str) -> io::Error {
    let answer = String::from_utf8_lossy(answer);
    let message = format!("it answers {answer:?} to {packet:?}, and not {expected}");
    io::Error::new(io::ErrorKind::InvalidData, message)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Decodes sixteen hexadecimal digits, the lowest byte first.
fn little_endian(digits: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.len() == 16)?;
    u64::from_str_radix(digits, 16).ok().map(u64::swap_bytes)
}
