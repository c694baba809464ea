// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/kgmon: a write is a command, reads of the same open file return its answer. For root only.
 *
 *	start [WORD...]  starts to count; earlier counts continue
 *	stop             stops counting and restores the NOPs; the counts stay
 *	reset            forgets the counts
 *	dump             the answer is a dump (format.h)
 *	take             dump and reset in one
 *	status           the answer is text, one `name value` per line
 *
 * If a command fails, the write returns its errno, and the answer is the reason as text.
 */
#include "kgmon.h"

#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/security.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#define COMMAND_MAX 65536
#define STATUS_MAX 2048

struct session {
	/*
	 * Held while the answer is made or read. Taken before kg_lock, which is not held while copying to user memory: that may
	 * take forever, and loading a module needs kg_lock.
	 */
	struct mutex lock;
	void *answer; /* from kvmalloc or vmalloc */
	size_t size;
	loff_t at; /* read position; the file's own position does not move if a command fails */
};

/* The session that started counting with `hold`: closing it stops counting. */
static struct session *holder;

static void answer(struct session *session, void *text, size_t size)
{
	kvfree(session->answer);
	session->answer = text;
	session->size = text ? size : 0;
	session->at = 0;
}

static int status(struct session *session)
{
	static const char *const timers[] = { "off", "random", "tick" };
	char *text = kvmalloc(STATUS_MAX, GFP_KERNEL);
	int size;

	if (!text)
		return -ENOMEM;
	size = scnprintf(text, STATUS_MAX,
			 "version %d\ncalls %s\nentry %s\nmodule_functions %u\ntimer %s\nperiod_ns %llu\n"
			 "arcs %u\narc_capacity %u\nsample_capacity %u\nmemory_bytes %zu\nsequence %llu\n"
			 "modules_missed %d\n",
			 KG_DUMP_VERSION, kg_sites_running() ? "counting" : "stopped",
			 kg_sites_direct() ? "direct" : kg_sites_running() ? "generic" : "off", kg_sites_in_modules(),
			 timers[kg_sample_running() ? kg_state.timer : KG_TIMER_OFF], kg_state.period_ns,
			 kg_table_used(), kg_table_capacity(), kg_sample_capacity(),
			 kg_table_bytes() + kg_sample_bytes() + kg_snapshot_bytes(), kg_state.sequence,
			 kg_modules_missed());
	answer(session, text, size);
	return 0;
}

/* Parses one word of `start`; list words are appended. */
static int option(struct kg_options *options, char *word, struct kg_said *said)
{
	char *value = strchr(word, '=');
	bool good = true;

	if (!strcmp(word, "hold")) {
		options->hold = true;
		return 0;
	}
	if (!value || !value[1])
		return kg_fail(said, -EINVAL, "start has no word %.64s", word);
	*value++ = '\0';
	if (!strcmp(word, "filter"))
		options->filter[options->filters++] = value;
	else if (!strcmp(word, "except"))
		options->except[options->exceptions++] = value;
	else if (!strcmp(word, "arcs"))
		good = !kstrtouint(value, 10, &options->arcs) && options->arcs && options->arcs <= KG_ARCS_MAX;
	else if (!strcmp(word, "samples"))
		good = !kstrtouint(value, 10, &options->samples) && options->samples >= 64 &&
		       options->samples <= KG_SAMPLES_MAX && !(options->samples & (options->samples - 1));
	else if (!strcmp(word, "period"))
		good = !kstrtou64(value, 10, &options->period_ns) && options->period_ns >= KG_PERIOD_MIN &&
		       options->period_ns <= KG_PERIOD_MAX;
	else if (!strcmp(word, "seed"))
		good = !kstrtou64(value, 10, &options->seed);
	else if (!strcmp(word, "timer"))
		good = (options->timer = match_string((const char *const[]){ "off", "random", "tick" }, 3, value)) <= 2;
	else if (!strcmp(word, "entry"))
		good = (options->entry = match_string((const char *const[]){ "auto", "direct", "generic", "off" }, 4,
						      value)) <= 3;
	else
		return kg_fail(said, -EINVAL, "start has no word %.64s", word);
	return good ? 0 : kg_fail(said, -EINVAL, "%.64s cannot be %.64s", word, value);
}

static int start(struct session *session, char *words, struct kg_said *said)
{
	struct kg_options options = {
		.entry = KG_ENTRY_AUTO,
		.timer = KG_TIMER_RANDOM,
		.period_ns = KG_PERIOD_DEFAULT,
		.arcs = KG_ARCS_DEFAULT,
		.samples = KG_SAMPLES_DEFAULT,
		.seed = ktime_get_real_ns(),
	};
	size_t most = strlen(words) / 2 + 1; /* upper bound of words */
	char *word;
	int error = 0;

	options.filter = kvcalloc(most, sizeof(char *), GFP_KERNEL);
	options.except = kvcalloc(most, sizeof(char *), GFP_KERNEL);
	if (!options.filter || !options.except)
		error = kg_fail(said, -ENOMEM, "no memory");
	while (!error && (word = strsep(&words, " \t\n")))
		if (*word)
			error = option(&options, word, said);
	if (!error)
		error = kg_start(&options, said);
	if (!error)
		holder = options.hold ? session : NULL;
	kvfree(options.filter);
	kvfree(options.except);
	return error;
}

static int command(struct session *session, char *line, struct kg_said *said)
{
	char *words = strim(line), *verb = strsep(&words, " \t\n");
	bool take = !strcmp(verb, "take");
	void *dump;
	size_t size;
	int error;

	if (!strcmp(verb, "start"))
		return start(session, words ?: "", said);
	if (words && *skip_spaces(words))
		return kg_fail(said, -EINVAL, "%.64s takes no words", verb);
	if (!strcmp(verb, "status"))
		return status(session);
	if (!strcmp(verb, "reset"))
		return kg_reset(said);
	if (!strcmp(verb, "stop")) {
		kg_stop();
		holder = NULL;
		return 0;
	}
	if (!take && strcmp(verb, "dump"))
		return kg_fail(said, -EINVAL, "there is no command %.64s", verb);
	error = kg_dump(take, &dump, &size, said);
	if (!error)
		answer(session, dump, size);
	return error;
}

static ssize_t kg_write(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	struct session *session = file->private_data;
	struct kg_said said = { .text = "" };
	char *line;
	int error;

	if (!size || size >= COMMAND_MAX)
		return -EINVAL;
	line = memdup_user_nul(from, size);
	if (IS_ERR(line))
		return PTR_ERR(line);
	error = mutex_lock_interruptible(&session->lock);
	if (error) {
		kfree(line);
		return error;
	}
	mutex_lock(&kg_lock);
	answer(session, NULL, 0);
	error = command(session, line, &said);
	if (error) {
		size_t length = strlen(said.text);
		char *text = kvmalloc(length + 2, GFP_KERNEL);

		if (text)
			length = scnprintf(text, length + 2, "%s\n", said.text);
		answer(session, text, length);
	}
	mutex_unlock(&kg_lock);
	mutex_unlock(&session->lock);
	kfree(line);
	return error ?: (ssize_t)size;
}

static ssize_t kg_read(struct file *file, char __user *to, size_t size, loff_t *at)
{
	struct session *session = file->private_data;
	ssize_t result = mutex_lock_interruptible(&session->lock);

	if (result)
		return result;
	result = simple_read_from_buffer(to, size, &session->at, session->answer, session->size);
	mutex_unlock(&session->lock);
	return result;
}

static int kg_open(struct inode *inode, struct file *file)
{
	struct session *session;
	int error;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	/* A dump reveals where the kernel's code is. */
	error = security_locked_down(LOCKDOWN_TRACEFS);
	if (error)
		return error;
	session = kzalloc(sizeof(*session), GFP_KERNEL);
	if (!session)
		return -ENOMEM;
	mutex_init(&session->lock);
	mutex_lock(&kg_lock);
	error = status(session);
	mutex_unlock(&kg_lock);
	if (error)
		kfree(session);
	else
		file->private_data = session;
	return error;
}

static int kg_release(struct inode *inode, struct file *file)
{
	struct session *session = file->private_data;

	mutex_lock(&kg_lock);
	if (holder == session) {
		kg_stop();
		holder = NULL;
	}
	mutex_unlock(&kg_lock);
	kvfree(session->answer);
	kfree(session);
	return 0;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.open = kg_open,
	.release = kg_release,
	.read = kg_read,
	.write = kg_write,
	.llseek = noop_llseek,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "kgmon",
	.fops = &operations,
	.mode = 0600,
};

int kg_device_init(void)
{
	return misc_register(&device);
}

void kg_device_exit(void)
{
	misc_deregister(&device);
}
