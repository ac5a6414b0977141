//! System calls that may wait for this process, made by a child.
//!
//! A FUSE server must not use its own mount: if it is killed meanwhile, its threads that reply are gone, the kernel
//! lets it wait for their reply for ever, and its `/dev/fuse` stays open. A child without `/dev/fuse` can wait: the
//! server ends, the kernel fails all requests, and the child ends too.

#![expect(unsafe_code, reason = "fork has no safe name: only system calls are allowed after it")]

use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};

/// Between two looks at a child that has a time limit.
const POLL: Duration = Duration::from_millis(2);

/// Runs system calls in a child and returns their result. The child has no files but the standard three, no signals
/// but SIGKILL, and ends with the calling thread.
///
/// Errors: the work's own, no memory for a process, or `TimedOut` after `limit`, when the child is killed and is left
/// to end by itself.
///
/// # Safety
/// Other threads may have held locks at the fork. `work` must make system calls only: no allocation, no locks, no
/// panic.
pub(crate) unsafe fn system_calls(
    limit: Option<Duration>,
    work: impl FnOnce() -> rustix::io::Result<()>,
) -> io::Result<()> {
    let parent = rustix::process::getpid();
    // A signal handler would write to a descriptor of the parent that is another file in the child.
    let signals = block_signals()?;
    // SAFETY: the child makes system calls only, by this function's own contract, and ends with `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let result = alone(parent).and_then(|()| work());
        // SAFETY: ends the process at once, without destructors.
        unsafe { libc::_exit(result.map_or_else(Errno::raw_os_error, |()| 0)) }
    }
    let failed = io::Error::last_os_error();
    // SAFETY: restores the set that the kernel filled.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const signals, std::ptr::null_mut()) };
    let child = Pid::from_raw(child).filter(|_| child > 0).ok_or(failed)?;
    wait(child, limit)
}

/// Asks a filesystem for its size, which it cannot answer from a cache.
///
/// Errors: its own, `NotConnected` of a mount whose server has ended; `TimedOut`: no answer within the limit.
pub(crate) fn statvfs(path: &Path, limit: Duration) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_encoded_bytes())?;
    // SAFETY: a system call only.
    unsafe { system_calls(Some(limit), || rustix::fs::statvfs(&*path).map(drop)) }
}

/// Closes what the child has inherited. Without that it would hold `/dev/fuse` open, and the card's lock.
fn alone(parent: Pid) -> rustix::io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    if rustix::process::getppid() != Some(parent) {
        return Err(Errno::SRCH);
    }
    // SAFETY: takes numbers only.
    match unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) } {
        0 => Ok(()),
        _ => Err(Errno::NOSYS),
    }
}

fn block_signals() -> io::Result<libc::sigset_t> {
    let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: fills the first set, which the second call reads; the second fills the other, unless it fails.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        match libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) {
            0 => Ok(before.assume_init()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}

fn wait(child: Pid, limit: Option<Duration>) -> io::Result<()> {
    let began = Instant::now();
    let options = if limit.is_some() { WaitOptions::NOHANG } else { WaitOptions::empty() };
    loop {
        match rustix::process::waitpid(Some(child), options) {
            Ok(Some((_, status))) => {
                return match status.exit_status() {
                    Some(0) => Ok(()),
                    Some(error) => Err(io::Error::from_raw_os_error(error)),
                    None => Err(io::Error::other("a child process was killed")),
                };
            }
            Ok(None) if limit.is_some_and(|limit| began.elapsed() > limit) => {
                let _ = rustix::process::kill_process(child, Signal::KILL);
                return Err(io::ErrorKind::TimedOut.into());
            }
            Ok(None) => std::thread::sleep(POLL),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    fn run(limit: Option<Duration>, work: impl FnOnce() -> rustix::io::Result<()>) -> io::Result<()> {
        // SAFETY: the tests make system calls only.
        unsafe { system_calls(limit, work) }
    }

    #[test]
    fn the_result_of_the_work_comes_back() {
        run(None, || Ok(())).unwrap();
        assert_eq!(run(None, || Err(Errno::BUSY)).unwrap_err().raw_os_error(), Some(libc::EBUSY));
    }

    #[test]
    fn the_child_has_no_file_of_the_parent() {
        let file = tempfile::tempfile().unwrap();
        let number = file.as_raw_fd();
        // SAFETY: asks for flags of a number, open or not.
        let is_open = move || match unsafe { libc::fcntl(number, libc::F_GETFD) } {
            -1 => Err(Errno::BADF),
            _ => Ok(()),
        };
        is_open().unwrap();
        assert_eq!(run(None, is_open).unwrap_err().raw_os_error(), Some(libc::EBADF));
    }

    #[test]
    fn a_child_that_waits_too_long_is_killed() {
        let forever = || {
            let _ = rustix::thread::nanosleep(&rustix::time::Timespec { tv_sec: 1000, tv_nsec: 0 });
            Ok(())
        };
        let error = run(Some(Duration::from_millis(20)), forever).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
