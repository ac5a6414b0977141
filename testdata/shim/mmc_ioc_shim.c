// SPDX-License-Identifier: MIT OR Apache-2.0
//
// An LD_PRELOAD library that lets programs believe that a file of 512 bytes is an eMMC behind /dev/mmcblkN. It answers
// the MMC ioctls from files and writes down everything that was asked, so that a test can say what a program sent.
//
//   cc -shared -fPIC -O2 -o mmc_ioc_shim.so mmc_ioc_shim.c -ldl
//   EMMC_SHIM_DEVICE=/dev/mmcblk9 EMMC_SHIM_EXT_CSD=ext_csd.bin LD_PRELOAD=./mmc_ioc_shim.so mmc extcsd read /dev/mmcblk9
//
//   EMMC_SHIM_DEVICE    the path that becomes the card; it need not exist
//   EMMC_SHIM_EXT_CSD   512 bytes: the answer to CMD8, and what opening the path really opens
//   EMMC_SHIM_CMD56     512 bytes: the answer to CMD56; without it the card times out
//   EMMC_SHIM_LOG       one line for each open and each ioctl is appended here
//   EMMC_SHIM_READONLY  if set, whatever would write fails with EPERM; otherwise it succeeds and changes nothing
//   EMMC_SHIM_DENY      if set, every MMC ioctl fails with EPERM, as without CAP_SYS_RAWIO
//
// Absent on purpose: any state. No register changes, no data is kept. Needs glibc 2.33 or later.
#define _GNU_SOURCE
#define _LARGEFILE64_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/mmc/ioctl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { FDS = 1024, MMC_MAJOR = 179, R1_TRAN_READY = 0x00000900 };

static unsigned char is_card[FDS]; // by file descriptor

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int real_open(const char *path, int flags, mode_t mode) {
    static int (*next)(const char *, int, ...);
    if (!next)
        next = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open64");
    return next(path, flags, mode);
}

static void note(const char *format, ...) {
    const char *path = getenv("EMMC_SHIM_LOG");
    int fd = path ? real_open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
    if (fd < 0)
        return;
    va_list args;
    va_start(args, format);
    vdprintf(fd, format, args);
    va_end(args);
    REAL(close)(fd);
}

// The headers promise that no path is NULL, and the compiler believes them; but programs pass NULL to see it refused.
static const char *maybe_null(const char *path) {
    const char *volatile seen = path;
    return seen;
}

// The file that stands for the card if `path` is the card's, or NULL.
static const char *stand_in(const char *path) {
    const char *device = getenv("EMMC_SHIM_DEVICE"), *file = getenv("EMMC_SHIM_EXT_CSD");
    return device && file && maybe_null(path) && strcmp(path, device) == 0 ? file : NULL;
}

static int card_fd(int fd) { return fd >= 0 && fd < FDS && is_card[fd]; }

static int open_card(const char *path, const char *file, int flags) {
    static const char *const modes[] = {"O_RDONLY", "O_WRONLY", "O_RDWR", "O_ACCMODE"};
    int fd = real_open(file, O_RDONLY | O_CLOEXEC, 0);
    if (fd >= 0 && fd < FDS)
        is_card[fd] = 1;
    note("open %s %s\n", path, modes[flags & O_ACCMODE]);
    return fd;
}

#define MODE(flags)                                                                                                    \
    ({                                                                                                                 \
        mode_t mode_ = 0;                                                                                              \
        if ((flags) & (O_CREAT | O_TMPFILE)) {                                                                         \
            va_list args_;                                                                                             \
            va_start(args_, flags);                                                                                    \
            mode_ = va_arg(args_, int);                                                                                \
            va_end(args_);                                                                                             \
        }                                                                                                              \
        mode_;                                                                                                         \
    })
#define OPEN(name)                                                                                                     \
    int name(const char *path, int flags, ...) {                                                                       \
        const char *file = stand_in(path);                                                                             \
        return file ? open_card(path, file, flags) : REAL(name)(path, flags, MODE(flags));                             \
    }
#define OPENAT(name)                                                                                                   \
    int name(int dir, const char *path, int flags, ...) {                                                              \
        const char *file = stand_in(path);                                                                             \
        return file ? open_card(path, file, flags) : REAL(name)(dir, path, flags, MODE(flags));                        \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

int close(int fd) {
    if (card_fd(fd))
        is_card[fd] = 0;
    return REAL(close)(fd);
}

#define AS_CARD(result, is, st)                                                                                        \
    if ((result) == 0 && (is)) {                                                                                       \
        (st)->st_mode = S_IFBLK | 0660;                                                                                \
        (st)->st_rdev = makedev(MMC_MAJOR, 0);                                                                         \
    }
#define STAT(name, type)                                                                                               \
    int name(const char *path, struct type *st) {                                                                      \
        const char *file = stand_in(path);                                                                             \
        int result = REAL(name)(file ? file : path, st);                                                               \
        AS_CARD(result, file, st)                                                                                      \
        return result;                                                                                                 \
    }
#define FSTAT(name, type)                                                                                              \
    int name(int fd, struct type *st) {                                                                                \
        int result = REAL(name)(fd, st);                                                                               \
        AS_CARD(result, card_fd(fd), st)                                                                               \
        return result;                                                                                                 \
    }
STAT(stat, stat)
STAT(stat64, stat64)
STAT(lstat, stat)
STAT(lstat64, stat64)
FSTAT(fstat, stat)
FSTAT(fstat64, stat64)

int statx(int dir, const char *path, int flags, unsigned mask, struct statx *st) {
    const char *file = stand_in(path);
    int is = file || (maybe_null(path) && !*path && (flags & AT_EMPTY_PATH) && card_fd(dir));
    int result = REAL(statx)(dir, file ? file : path, flags, mask, st);
    if (result == 0 && is) {
        st->stx_mode = S_IFBLK | 0660;
        st->stx_rdev_major = MMC_MAJOR;
        st->stx_rdev_minor = 0;
    }
    return result;
}

static int answer(const char *variable, struct mmc_ioc_cmd *cmd) {
    const char *path = getenv(variable);
    void *data = (void *)(uintptr_t)cmd->data_ptr;
    size_t bytes = (size_t)cmd->blksz * cmd->blocks;
    int fd = path && data ? real_open(path, O_RDONLY | O_CLOEXEC, 0) : -1;
    ssize_t got = fd < 0 ? -1 : read(fd, data, bytes);
    if (fd >= 0)
        REAL(close)(fd);
    if (got == (ssize_t)bytes)
        return 0;
    errno = ETIMEDOUT;
    return -1;
}

static int command(struct mmc_ioc_cmd *cmd) {
    int pure_read = cmd->opcode == 8 || cmd->opcode == 13 || cmd->opcode == 31 || (cmd->opcode == 56 && (cmd->arg & 1));
    int writes = cmd->write_flag || !pure_read;
    note("CMD%u %s arg=0x%08x blksz=%u blocks=%u flags=0x%x\n", cmd->opcode, writes ? "WRITE" : "read", cmd->arg,
         cmd->blksz, cmd->blocks, cmd->flags);
    if (getenv("EMMC_SHIM_DENY") || (writes && getenv("EMMC_SHIM_READONLY"))) {
        errno = EPERM;
        return -1;
    }
    memset(cmd->response, 0, sizeof cmd->response);
    cmd->response[0] = R1_TRAN_READY;
    if (!writes && cmd->opcode == 8)
        return answer("EMMC_SHIM_EXT_CSD", cmd);
    if (!writes && cmd->opcode == 56)
        return answer("EMMC_SHIM_CMD56", cmd);
    if (!writes && cmd->data_ptr)
        memset((void *)(uintptr_t)cmd->data_ptr, 0, (size_t)cmd->blksz * cmd->blocks);
    return 0;
}

int ioctl(int fd, unsigned long request, ...) {
    va_list args;
    va_start(args, request);
    void *arg = va_arg(args, void *);
    va_end(args);
    if (!card_fd(fd))
        return REAL(ioctl)(fd, request, arg);
    if (request == MMC_IOC_CMD)
        return command(arg);
    if (request == MMC_IOC_MULTI_CMD) {
        struct mmc_ioc_multi_cmd *multi = arg;
        for (uint64_t i = 0; i < multi->num_of_cmds; i++)
            if (command(&multi->cmds[i]) != 0)
                return -1;
        return 0;
    }
    // The size of a card as SEC_COUNT states it.
    unsigned char ext_csd[512] = {0};
    uint32_t sectors = pread(fd, ext_csd, sizeof ext_csd, 0) == (ssize_t)sizeof ext_csd
                           ? ext_csd[212] | ext_csd[213] << 8 | ext_csd[214] << 16 | (uint32_t)ext_csd[215] << 24
                           : 0;
    note("ioctl 0x%lx\n", request);
    if (request == BLKGETSIZE)
        return *(unsigned long *)arg = sectors, 0;
    if (request == BLKGETSIZE64)
        return *(uint64_t *)arg = (uint64_t)sectors * 512, 0;
    if (request == BLKSSZGET)
        return *(int *)arg = 512, 0;
    errno = ENOTTY;
    return -1;
}
