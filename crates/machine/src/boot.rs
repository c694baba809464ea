//! Stops a kernel while it boots: sets its clock, and presets what it would measure.
//!
//! - The firmware, and the search of its tables and of option ROMs, take other times with each of
//!   QEMU's versions and firmwares, and the kernel begins its clocks and random numbers with the time.
//!   So the guest waits for a round time before it uses the time.
//! - To measure the frequency of the APIC timer, the kernel would wait for two tenths of a second, in
//!   loops of `pause` each of which leaves QEMU's translated code: four fifths of the time of a short
//!   run. Hypervisors tell their guests; QEMU can do so only with KVM. So the value goes into the
//!   variable that the kernel checks first.
//!
//! QEMU's gdb server stops the kernel. With icount, and idle time skipped, virtual time is at the next
//! timer's expiry after a stop: QEMU takes a stopped guest for an idle one.
//!
//! With several CPUs the speed of delay loops goes onto the command line.

use crate::gdb::GdbConnection;
use crate::{Error, Result};
use kerntune_isa::{BootMeasurement, ClockWait, GuestIsa, Isa};
use kerntune_kernel::Kernel;
use kerntune_work::IoContext;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::thread::JoinHandle;

/// Kernels start at the next multiple of so many nanoseconds. Firmwares' times differ by
/// microseconds; a guest waits half of it on average, an instruction each.
const START_STEP: u32 = 1 << 20;

/// Bytes below the stack pointer at which code may lie until the next call.
const UNUSED_STACK: u64 = 256;

/// A value to write into a kernel variable of four bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct VariablePatch {
    variable: u64,
    value: u32,
}

/// Stops of one run.
pub(crate) struct BootStops {
    /// Standard input for QEMU.
    stdin: OwnedFd,
    ours: UnixStream,
    /// Addresses of functions where the kernel stops when it first gets there; after the last it stops
    /// no more.
    stops: Vec<u64>,
    /// True if it waits there for a round time.
    set_clock: bool,
    /// Written at the last stop.
    patch: Option<VariablePatch>,
}

/// Adds options that make QEMU wait for the stops. Returns `None` for a kernel without the symbols.
///
/// # Errors
/// A kernel whose files cannot be read.
pub(crate) fn prepare(kernel: &Kernel, set_clock: bool, command: &mut Command) -> Result<Option<BootStops>> {
    let symbols = kernel.symbols()?;
    let address = |name: &&str| symbols.functions().iter().find(|it| it.name == *name).map(|it| it.address);
    let stops: Vec<u64> = GuestIsa::START_CLOCK.stops.iter().filter_map(address).collect();
    if stops.is_empty() {
        return Ok(None);
    }
    let patch = find_patch(kernel)?;
    let (ours, theirs) = UnixStream::pair().at("make a socket for", kernel.image())?;
    command.args(["-S", "-chardev", "socket,id=gdb,fd=0", "-gdb", "chardev:gdb"]);
    Ok(Some(BootStops { stdin: theirs.into(), ours, stops, set_clock, patch }))
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
    let BootMeasurement { variable, hertz: _ } = GuestIsa::MEASURED;
    let variable = kernel.variables()?.into_iter().find(|(_, size, name)| name == variable && *size == 4);
    Ok(match (variable, period(kernel)?) {
        (Some((variable, ..)), Some(value)) => Some(VariablePatch { variable, value }),
        _ => None,
    })
}

impl BootStops {
    /// Starts a thread that waits for the stops. The thread ends with QEMU at the latest.
    pub(crate) fn start(self) -> (OwnedFd, JoinHandle<io::Result<()>>) {
        let Self { stdin, ours, stops, set_clock, patch } = self;
        let boot = move || boot(&mut GdbConnection::new(ours), &stops, set_clock, patch);
        (stdin, std::thread::spawn(boot))
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

fn boot(
    guest: &mut GdbConnection,
    stops: &[u64],
    set_clock: bool,
    patch: Option<VariablePatch>,
) -> io::Result<()> {
    let result = make_stops(guest, stops, set_clock, patch);
    if result.is_err() {
        // Otherwise the stopped guest would only be noticed at the time limit.
        let _ = guest.kill();
    }
    result
}

fn make_stops(
    guest: &mut GdbConnection,
    stops: &[u64],
    set_clock: bool,
    patch: Option<VariablePatch>,
) -> io::Result<()> {
    let ClockWait { program_counter, .. } = GuestIsa::START_CLOCK;
    for stop in stops {
        guest.add_breakpoint(*stop)?;
    }
    let mut left = stops.to_vec();
    while left.last() == stops.last() {
        guest.run()?;
        let here = guest.register(program_counter)?;
        left.retain(|stop| *stop != here);
        guest.remove_breakpoint(here)?;
        if set_clock {
            wait_for_round_time(guest, here)?;
        }
    }
    for stop in left {
        guest.remove_breakpoint(stop)?;
    }
    if let Some(VariablePatch { variable, value }) = patch {
        guest.set_memory(variable, &value.to_le_bytes())?;
    }
    guest.detach()
}

/// Lets the guest wait, before the function where it stopped, for the next multiple of [`START_STEP`].
/// The code for it lies where the stack is not in use.
fn wait_for_round_time(guest: &mut GdbConnection, function: u64) -> io::Result<()> {
    let ClockWait { stack_pointer, program_counter, code, .. } = GuestIsa::START_CLOCK;
    let place = guest.register(stack_pointer)?.wrapping_sub(UNUSED_STACK);
    guest.set_memory(place, &code(START_STEP, function))?;
    guest.set_register(program_counter, place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    const STOPS: [u64; 3] = [0xffff_ffff_81ca_7810, 0xffff_ffff_81cb_0000, 0xffff_ffff_81cb_c200];
    const PATCH: VariablePatch = VariablePatch { variable: 0xffff_ffff_81d6_7f44, value: 4_000_000 };

    /// Boots with a server with these answers; returns the result and the packets sent.
    fn talk(answers: &'static [&'static str], set_clock: bool) -> (io::Result<()>, String) {
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
        let result = boot(&mut GdbConnection::new(ours), &STOPS, set_clock, Some(PATCH));
        (result, server.join().unwrap())
    }

    #[test]
    fn a_kernel_stops_until_the_last_place_and_its_variable_is_written() {
        let answers = &["OK", "OK", "OK", "T05thread:01;", "00c2cb81ffffffff", "OK", "OK", "OK", "OK", "OK"];
        let (result, sent) = talk(answers, false);
        result.unwrap();
        let lines = [
            "$Z1,ffffffff81ca7810,1#",
            "$Z1,ffffffff81cb0000,1#",
            "$Z1,ffffffff81cbc200,1#",
            "$c#63",
            "$p10#",
            "$z1,ffffffff81cbc200,1#",
            "$z1,ffffffff81ca7810,1#",
            "$z1,ffffffff81cb0000,1#",
            "$Mffffffff81d67f44,4:00093d00#",
            "$D#44",
        ];
        assert_eq!(sent.lines().count(), lines.len(), "{sent}");
        assert!(lines.iter().zip(sent.lines()).all(|(line, sent)| sent.starts_with(line)), "{sent}");
    }

    #[test]
    fn a_clock_is_set_by_code_below_the_stack_before_each_function() {
        let answers = &[
            "OK",
            "OK",
            "OK",
            "T05thread:01;",
            "1078ca81ffffffff",
            "OK",
            "583f0082ffffffff",
            "OK",
            "OK",
            "T05thread:01;",
            "00c2cb81ffffffff",
            "OK",
            "583f0082ffffffff",
            "OK",
            "OK",
            "OK",
            "OK",
            "OK",
        ];
        let (result, sent) = talk(answers, true);
        result.unwrap();
        let lines: Vec<_> = sent.lines().collect();
        assert!(lines[5].starts_with("$z1,ffffffff81ca7810,1#"), "{sent}");
        assert_eq!(lines[6], "$p7#a7");
        assert!(lines[7].starts_with("$Mffffffff82003e58,1b:0f31"), "{sent}");
        assert!(lines[7].contains("48b81078ca81ffffffffffe0#"), "{sent}");
        assert!(lines[8].starts_with("$P10=583e0082ffffffff#"), "{sent}");
        assert!(lines[13].contains("48b800c2cb81ffffffffffe0#"), "{sent}");
        // The place that the kernel did not come to.
        assert!(lines[15].starts_with("$z1,ffffffff81cb0000,1#"), "{sent}");
    }

    #[test]
    fn an_answer_that_is_none_is_an_error_and_an_end_is_none() {
        let (result, _) = talk(&["OK", "OK", "OK", "E22"], false);
        let error = result.unwrap_err();
        assert!(error.to_string().contains("answers \"E22\" to \"c\""), "{error}");
        let failed = std::thread::spawn(move || Err(error));
        assert!(matches!(finish(failed), Err(Error::Qemu { .. })));
        let (result, _) = talk(&["OK", "OK", "OK", "T05thread:01;", "E14"], true);
        assert!(result.unwrap_err().to_string().contains("a register of 64 bits"));
        for answers in [&["OK"][..], &["OK", "OK", "OK", "W00"]] {
            let (result, _) = talk(answers, false);
            assert!(finish(std::thread::spawn(move || result)).is_ok(), "{answers:?}");
        }
    }
}
