/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * What the processes inside may do: the capabilities of a server that changes its user, and no system call that reaches
 * what all namespaces share.
 *
 * The filter names what is forbidden, after what container runtimes forbid, and forbids all that is newer than its list.
 * What it allows without a look at arguments costs next to nothing: the kernel keeps the answer.
 */
#include "contain.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NEWEST 466 /* removexattrat: the last system call that was looked at */
#define LAST_CAPABILITY 63

static const int kept[] = {
	CAP_CHOWN,  CAP_DAC_OVERRIDE, CAP_FOWNER,  CAP_FSETID,		 CAP_KILL,
	CAP_SETGID, CAP_SETUID,	      CAP_SETPCAP, CAP_NET_BIND_SERVICE, CAP_SYS_CHROOT,
};

static bool is_kept(int capability)
{
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (kept[i] == capability)
			return true;
	return false;
}

static bool drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { 0, 0, 0 }, { 0, 0, 0 } };

	/* EINVAL: this kernel has no such capability. */
	for (int i = 0; i <= LAST_CAPABILITY; i++)
		if (!is_kept(i) && prctl(PR_CAPBSET_DROP, i, 0, 0, 0) < 0 && errno != EINVAL)
			return refuse("cannot drop capability %d: %s", i, strerror(errno));
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return refuse("cannot drop ambient capabilities: %s", strerror(errno));
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		data[CAP_TO_INDEX(kept[i])].effective |= CAP_TO_MASK(kept[i]);
		data[CAP_TO_INDEX(kept[i])].permitted |= CAP_TO_MASK(kept[i]);
	}
	if (syscall(SYS_capset, &header, data) < 0)
		return refuse("cannot drop capabilities: %s", strerror(errno));
	return true;
}

static const int forbidden[] = {
	/* Mounts and namespaces. */
	SYS_mount, SYS_umount2, SYS_pivot_root, SYS_open_tree, SYS_move_mount, SYS_fsopen, SYS_fsconfig, SYS_fsmount,
	SYS_fspick, SYS_mount_setattr, SYS_unshare, SYS_setns,
	/* The kernel itself. */
	SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_create_module, SYS_get_kernel_syms, SYS_query_module,
	SYS_kexec_load, SYS_kexec_file_load, SYS_reboot, SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_syslog,
	SYS_iopl, SYS_ioperm, SYS__sysctl, SYS_lookup_dcookie,
	/* Its rings do what system calls do, past this filter. */
	SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register,
	/* What there is one of in a machine. */
	SYS_keyctl, SYS_add_key, SYS_request_key, SYS_settimeofday, SYS_clock_settime, SYS_adjtimex, SYS_clock_adjtime,
	SYS_sethostname, SYS_setdomainname, SYS_swapon, SYS_swapoff, SYS_acct, SYS_quotactl, SYS_quotactl_fd,
	SYS_nfsservctl, SYS_vhangup, SYS_fanotify_init,
	/* Files and descriptors by another way than their names. */
	SYS_open_by_handle_at, SYS_name_to_handle_at, SYS_pidfd_getfd,
};

static struct sock_filter program[512];
static unsigned short length;

static void emit(unsigned short code, uint32_t k, uint8_t yes, uint8_t no)
{
	if (length < sizeof(program) / sizeof(program[0]))
		program[length] = (struct sock_filter){ code, yes, no, k };
	length++;
}

static void load(size_t offset)
{
	emit(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

/* The lower half, which is all that the kernel takes of an int. */
static void load_argument(int which)
{
	load(offsetof(struct seccomp_data, args) + 8 * (size_t)which);
}

static void answer(int error)
{
	emit(BPF_RET | BPF_K, error ? SECCOMP_RET_ERRNO | (uint32_t)error : SECCOMP_RET_ALLOW, 0, 0);
}

/* The rest of a rule follows, `size` instructions, for this system call. */
static void begin_rule(int number, uint8_t size)
{
	emit(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, size);
}

static void forbid(int number, int error)
{
	begin_rule(number, 1);
	answer(error);
}

/* An argument that may not have this value. */
static void forbid_value(int number, int argument, uint32_t value)
{
	begin_rule(number, 4);
	load_argument(argument);
	emit(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
	answer(EPERM);
	load(offsetof(struct seccomp_data, nr));
}

/* Threads and processes, in the namespaces that there are. */
static void restrict_clone(void)
{
	begin_rule(SYS_clone, 4);
	load_argument(0);
	emit(BPF_JMP | BPF_JSET | BPF_K,
	     CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET, 0,
	     1);
	answer(EPERM);
	answer(0);
	/* Its flags are in memory, where no filter sees them; libraries then take the older one. */
	forbid(SYS_clone3, ENOSYS);
}

/* Other families, protocols and types reach past the network namespace (AF_VSOCK) or make the kernel load modules. */
static void restrict_sockets(int number)
{
	static const uint32_t families[] = { AF_UNIX, AF_INET, AF_INET6 };
	static const uint32_t protocols[] = { 0, IPPROTO_ICMP, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMPV6, IPPROTO_MPTCP };
	const uint8_t f = sizeof(families) / sizeof(families[0]), p = sizeof(protocols) / sizeof(protocols[0]);

	begin_rule(number, (uint8_t)(f + p + 14));
	load_argument(1);
	emit(BPF_ALU | BPF_AND | BPF_K, 0xf, 0, 0); /* without SOCK_CLOEXEC and the like */
	emit(BPF_JMP | BPF_JGT | BPF_K, SOCK_SEQPACKET, 0, 1);
	answer(ESOCKTNOSUPPORT);
	load_argument(0);
	emit(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 4);
	load_argument(2);
	emit(BPF_JMP | BPF_JEQ | BPF_K, NETLINK_ROUTE, 1, 0);
	answer(EPROTONOSUPPORT);
	answer(0);
	for (uint8_t i = 0; i < f; i++)
		emit(BPF_JMP | BPF_JEQ | BPF_K, families[i], (uint8_t)(f - i), 0);
	answer(EAFNOSUPPORT);
	load_argument(2);
	for (uint8_t i = 0; i < p; i++)
		emit(BPF_JMP | BPF_JEQ | BPF_K, protocols[i], (uint8_t)(p - i), 0);
	answer(EPROTONOSUPPORT);
	answer(0);
}

/* A dump would go to the program of the host's that core_pattern names. limits.c switched dumps off. */
static void restrict_core_limit(void)
{
	forbid_value(SYS_setrlimit, 0, RLIMIT_CORE);
	begin_rule(SYS_prlimit64, 8);
	load_argument(1);
	emit(BPF_JMP | BPF_JEQ | BPF_K, RLIMIT_CORE, 0, 5);
	load_argument(2);
	emit(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 2);
	load(offsetof(struct seccomp_data, args) + 8 * 2 + 4);
	emit(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0);
	answer(EPERM);
	answer(0);
}

static bool filter_calls(void)
{
	struct sock_fprog filter = { .filter = program };

	/* Numbers mean other calls to a program of 32 bits, or of the x32 kind, whose numbers are beyond all others. */
	load(offsetof(struct seccomp_data, arch));
	emit(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
	answer(ENOSYS);
	load(offsetof(struct seccomp_data, nr));
	emit(BPF_JMP | BPF_JGT | BPF_K, NEWEST, 0, 1);
	answer(ENOSYS);
	for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++)
		forbid(forbidden[i], EPERM);
	restrict_clone();
	restrict_sockets(SYS_socket);
	restrict_sockets(SYS_socketpair);
	/* What a terminal's owner would have typed. */
	forbid_value(SYS_ioctl, 1, TIOCSTI);
	forbid_value(SYS_ioctl, 1, TIOCLINUX);
	restrict_core_limit();
	answer(0);
	if (length > sizeof(program) / sizeof(program[0]))
		return refuse("the filter of system calls is too long: this is a bug");
	filter.len = length;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return refuse("cannot give up new privileges: %s", strerror(errno));
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) < 0)
		return refuse("cannot filter system calls: %s", strerror(errno));
	return true;
}

bool rights_drop(void)
{
	return drop_capabilities() && filter_calls();
}
