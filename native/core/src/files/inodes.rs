//! Whether files have numbers that stay.

#![allow(unsafe_code, reason = "a question to the system that the standard library does not ask")]

use std::ffi::{CString, OsStr};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;

/// File systems that give a file the same number each time: ext2 to ext4, XFS, Btrfs, ZFS and tmpfs. Others, such as
/// those in user space, may number files anew whenever they are looked at.
#[cfg(target_os = "linux")]
const NUMBERED: [u64; 5] = [
    libc::EXT4_SUPER_MAGIC as u64,
    libc::XFS_SUPER_MAGIC as u64,
    libc::BTRFS_SUPER_MAGIC as u64,
    0x2fc1_2fc1,
    libc::TMPFS_MAGIC as u64,
];

/// Whether the files in a folder keep their inode numbers, as far as is known.
#[cfg(target_os = "linux")]
#[allow(clippy::cast_sign_loss, reason = "a pattern of bits, which not all systems give a sign")]
pub(super) fn keeps_inodes(folder: &OsStr) -> bool {
    let Ok(path) = CString::new(folder.as_bytes()) else { return false };
    let mut found = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the path ends in a zero, and the system fills the struct whenever it returns zero.
    let kind = unsafe {
        if libc::statfs(path.as_ptr(), found.as_mut_ptr()) != 0 {
            return false;
        }
        found.assume_init().f_type
    };
    NUMBERED.contains(&(kind as u64))
}

/// Whether the files in a folder keep their inode numbers: not known here.
#[cfg(not(target_os = "linux"))]
pub(super) fn keeps_inodes(_folder: &OsStr) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn files_keep_their_numbers_in_memory_but_processes_do_not() {
        assert!(keeps_inodes(OsStr::new("/dev/shm")));
        assert!(!keeps_inodes(OsStr::new("/proc")) && !keeps_inodes(OsStr::new("/no/such/folder")));
    }
}
