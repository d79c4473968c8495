/// The `statx(2)` data of a file at one moment; equal values mean the same bytes, as far as a stat can show.
///
/// A file is *known* by path, `size` and `modified`. `inode`, `device` and `changed` guard one delivery only: they
/// differ after a chmod, a remount or a restore. There the content hash decides before anything is sent again.
package struct FileIdentity: Hashable, Sendable, Codable {
    /// Length in bytes.
    package var size: Int64
    /// `st_mtim`, in nanoseconds since 1970-01-01 UTC.
    package var modified: Int64
    /// `st_ctim`, in nanoseconds since 1970-01-01 UTC.
    package var changed: Int64
    /// `st_ino`.
    package var inode: UInt64
    /// `st_dev`.
    package var device: UInt64

    package init(size: Int64, modified: Int64, changed: Int64, inode: UInt64, device: UInt64) {
        self.size = size
        self.modified = modified
        self.changed = changed
        self.inode = inode
        self.device = device
    }

    /// For a folder: when a name in it came or went, the later of its two times. Tools that set the mtime of their
    /// copies (rsync, tar, `cp -a`) cannot set the ctime.
    package var touched: Int64 { max(modified, changed) }

    /// Whether `other` is the same content by the rule for known files: equal size, and mtime within `tolerance`
    /// nanoseconds (2 s on FAT, whose clock is that coarse; 0 elsewhere).
    package func isKnown(as other: FileIdentity, tolerance: Int64 = 0) -> Bool {
        let (distance, overflow) = modified.subtractingReportingOverflow(other.modified)
        return size == other.size && !overflow && distance.magnitude <= tolerance.magnitude
    }

    /// Whether `other`, on the same removable volume, is this file even after a new mount. The device number is then
    /// random, and FAT (`tolerance` > 0) makes up inodes and ctime at each mount.
    package func isSame(onVolumeAs other: FileIdentity, tolerance: Int64) -> Bool {
        isKnown(as: other, tolerance: tolerance) && (tolerance > 0 || changed == other.changed)
    }

    /// Whether the file was not touched between two looks of one delivery. A rename changes the ctime; the finisher,
    /// which renames first, ignores it.
    package func isUntouched(since admitted: FileIdentity, ignoringChangeTime: Bool = false) -> Bool {
        size == admitted.size && modified == admitted.modified && inode == admitted.inode
            && device == admitted.device && (ignoringChangeTime || changed == admitted.changed)
    }
}
