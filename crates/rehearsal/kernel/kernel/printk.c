/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Two serial ports: the console, and the results as a tar archive.
 */
#include <linux/kernel.h>

enum { CONSOLE = 0x3f8, RESULTS = 0x2f8, STATUS = 5, EMPTY = 0x20 };

static void put(u16 port, u8 byte)
{
	while (!(inb(port + STATUS) & EMPTY))
		;
	outb(port, byte);
}

static void send(u16 port, const u8 *bytes, u64 count)
{
	for (u64 i = 0; i < count; i++)
		put(port, bytes[i]);
}

void printk(const char *text)
{
	send(CONSOLE, (const u8 *)text, strlen(text));
}

void power_off(void)
{
	printk("reboot: Power down\n");
	for (;;)
		asm volatile("hlt");
}

void panic(const char *what)
{
	printk("Kernel panic - not syncing: ");
	printk(what);
	printk("\n");
	for (;;)
		asm volatile("hlt");
}

static void octal(char *field, u64 digits, u64 value)
{
	field[digits] = 0;
	while (digits--) {
		field[digits] = (char)('0' + (value & 7));
		value >>= 3;
	}
}

/* Writes a regular file to the archive. */
void result(const char *name, const void *bytes, u64 size)
{
	static const u8 nothing[512];
	u8 header[512];
	u64 length = strlen(name);
	u32 sum = 0;

	memset(header, 0, sizeof(header));
	if (length > 99)
		panic("name of a result too long");
	memcpy(header, name, length);
	octal((char *)header + 100, 7, 0644);
	octal((char *)header + 124, 11, size);
	octal((char *)header + 136, 11, 0);
	memcpy(header + 257, "ustar\00000", 8);
	header[156] = '0';
	memset(header + 148, ' ', 8);
	for (u64 i = 0; i < sizeof(header); i++)
		sum += header[i];
	octal((char *)header + 148, 6, sum);
	send(RESULTS, header, sizeof(header));
	send(RESULTS, bytes, size);
	send(RESULTS, nothing, -size & 511);
}
