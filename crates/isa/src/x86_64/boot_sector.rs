//! A boot sector that ends QEMU.

/// `mov dx, 0xf4; mov al, 0x2a; out dx, al; hlt; jmp $-1`: writes to the debug-exit device.
const CODE: [u8; 9] = [0xba, 0xf4, 0x00, 0xb0, 0x2a, 0xee, 0xf4, 0xeb, 0xfd];

/// The sector, and QEMU's exit status for the 0x2a that it writes to isa-debug-exit.
pub const EXITS: ([u8; 512], i32) = {
    let mut sector = [0; 512];
    let mut at = 0;
    while at < CODE.len() {
        sector[at] = CODE[at];
        at += 1;
    }
    (sector[510], sector[511]) = (0x55, 0xaa);
    (sector, (0x2a << 1) | 1)
};
