//! x86-64: a PC, real or virtual.

mod boot_image;
mod boot_sector;
mod clock_wait;
mod code;
mod entry;
mod frames;
mod names;
mod paging;
mod registers;
mod stubs;
mod tags;
mod vulnerable;

use crate::{
    AddressSpace, BlockEnding, BlockFlow, BootMeasurement, ClockWait, CountedFaults, EmulatedCpu,
    ExceptionFrame, ForgottenTranslations, Insn, InstructionText, InterruptStub, Isa, IsaNames, KbuildNames,
    Register, StoppedCpu, TagAccess, TargetRole, VulnerableCpu,
};
use kerntune_trace::mark::Mark;
use kerntune_trace::{FunctionKind, TagSource};

/// The instruction set x86-64.
#[derive(Debug, Clone, Copy)]
pub enum X86_64 {}

impl Isa for X86_64 {
    type Decoded = iced_x86::Instruction;

    const NAMES: IsaNames = names::NAMES;
    const KBUILD: KbuildNames = names::KBUILD;
    const DEBIAN: &'static str = "amd64";
    const SERIAL: &'static str = "ttyS0";
    const BOOT_SECTOR: ([u8; 512], i32) = boot_sector::EXITS;

    const REGISTERS: &'static [&'static str] = &registers::NAMES;
    const ARGUMENTS: [Register; 2] = [registers::RDI, registers::RSI];
    const FURTHER_ARGUMENTS: [Register; 3] = [registers::RDX, registers::RCX, registers::R8];
    // `flags`, `syscall_work`, `status`, `cpu` of arch/x86/include/asm/thread_info.h, in kernels
    // from 5.11 to 7.3.
    const TASK_STATE: u64 = 24;
    const STACK_POINTER: Register = registers::RSP;
    // `__START_KERNEL_map` of arch/x86/include/asm/page_64_types.h; the image is loaded where it
    // was linked.
    const IMAGE_OFFSET: u64 = 0xffff_ffff_8000_0000;
    // arch/x86/kernel/apic/apic.c, Linux 5.3 and later; QEMU's hw/intc/apic.c counts nanoseconds.
    const MEASURED: BootMeasurement =
        BootMeasurement { variable: "lapic_timer_period", hertz: 1_000_000_000 };
    const START_CLOCK: ClockWait = ClockWait {
        // `setup_arch` reads SMBIOS tables (the second), begins the scheduler's clock (the third), and
        // searches for option ROMs and processor tables; then the last one runs.
        stops: &["start_kernel", "add_device_randomness", "use_tsc_delay", "setup_per_cpu_areas"],
        stack_pointer: 7,
        program_counter: 16,
        code: clock_wait::code,
    };
    const EMULATED: EmulatedCpu = EmulatedCpu {
        // QEMU has the last two since 10.1; a kernel patches other code into itself with them.
        features: "max,-rdrand,-rdseed,-null-sel-clr-base,-no-nested-data-bp",
        // `rep movsb` and `rep stosb`.
        no_fast_strings: ",-erms,-fsrm,-fsrs,-fsrc,-fzrm",
        // Without `no_timer_check` a kernel would wait four ticks in a loop that leaves QEMU's
        // translated code, to test that timers interrupt. Hypervisors tell their guests this and the
        // TSC's frequency; measured by the PIT it has an error of 7 ppm.
        kernel_options: "tsc=reliable clocksource=tsc tsc_early_khz=1000000 no_timer_check",
    };
    const VULNERABLE: &'static [VulnerableCpu] = vulnerable::CPUS;
    const SYSTEM_CALL_RETURN: Register = registers::RCX;
    const PORT_AND_TAG: [Register; 2] = [registers::RDX, registers::RAX];

    fn instructions(code: &[u8], address: u64) -> impl Iterator<Item = Insn> + '_ {
        code::instructions(code, address)
    }
    fn disassemble(code: &[u8], address: u64) -> impl Iterator<Item = InstructionText> + '_ {
        code::disassemble(code, address)
    }
    fn decode(insn: &Insn) -> Self::Decoded {
        code::decode(insn)
    }
    fn ending(last: &Insn) -> (BlockEnding, BlockFlow) {
        code::ending(last)
    }
    fn is_table_jump(jump: &Insn) -> bool {
        code::is_table_jump(jump)
    }
    fn target_role(name: &str) -> TargetRole {
        entry::target_role(name)
    }
    fn counted_faults(last: &Insn, user: bool) -> CountedFaults {
        code::counted_faults(last, user)
    }
    fn stores(insn: &Insn) -> bool {
        code::stores(insn)
    }
    fn writes(insn: &Self::Decoded, cpu: &mut dyn StoppedCpu) -> Vec<(u64, u64)> {
        code::writes(insn, cpu)
    }
    fn jump_target(jump: &Self::Decoded, cpu: &mut dyn StoppedCpu) -> Option<u64> {
        code::jump_target(jump, cpu)
    }
    fn forgotten_translations(insn: &Insn) -> Option<ForgottenTranslations> {
        code::forgotten_translations(insn)
    }
    fn mark(insn: &Insn) -> Option<Mark> {
        code::mark(insn)
    }
    fn tag(tags: TagSource, insn: &Insn) -> Option<TagAccess> {
        tags::find(tags, insn)
    }

    #[inline]
    fn address_space(cpu: &mut dyn StoppedCpu) -> AddressSpace {
        paging::address_space(cpu)
    }
    fn page_table(cpu: &mut dyn StoppedCpu) -> u64 {
        paging::page_table(cpu)
    }
    fn page_shift(space: &AddressSpace, table: u64, address: u64, cpu: &mut dyn StoppedCpu) -> u8 {
        paging::page_shift(space, table, address, cpu)
    }
    fn is_kernel(address: u64) -> bool {
        address >> 63 == 1
    }
    fn clock(cpu: &mut dyn StoppedCpu) -> u64 {
        let mut half = |register| cpu.register(register) & 0xffff_ffff;
        let low = half(registers::RAX);
        half(registers::RDX) << 32 | low
    }
    fn exception_frame(cpu: &mut dyn StoppedCpu) -> Option<ExceptionFrame> {
        frames::exception(cpu)
    }
    fn interrupted_user(cpu: &mut dyn StoppedCpu) -> Option<u64> {
        frames::interrupted_user(cpu)
    }
    fn interrupt_return(cpu: &mut dyn StoppedCpu) -> u64 {
        frames::interrupt_return(cpu)
    }
    fn interrupt_return_stack(cpu: &mut dyn StoppedCpu) -> Option<u64> {
        frames::interrupt_return_stack(cpu)
    }

    fn function_kind(name: &str) -> Option<FunctionKind> {
        entry::kind(name)
    }
    const SYSTEM_CALLS: &'static [&'static str] = &entry::SYSTEM_CALLS;
    fn is_common_interrupt(name: &str) -> bool {
        entry::COMMON_ENTRIES.contains(&name)
    }
    const STUB_LABELS: &'static [&'static str] = &stubs::LABELS;
    fn interrupt_stubs(code: &[u8], address: u64) -> Vec<InterruptStub> {
        stubs::decode(code, address)
    }
    fn image_release(image: &[u8]) -> Result<String, &'static str> {
        boot_image::release(image)
    }
    fn image_payload(image: &[u8]) -> Option<&[u8]> {
        boot_image::payload(image)
    }
}
