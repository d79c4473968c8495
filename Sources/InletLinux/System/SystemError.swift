import Glibc
import InletCore
package import SystemPackage

/// A failed system call: which one, on what, why, and the remedy.
package struct SystemError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The fault where the kernel itself had no complaint.
    package enum Refusal: Sendable, Hashable {
        /// A symlink, FIFO, socket, device or folder where only a regular file is taken.
        case notRegular
        /// A file above the limit that the caller gave to `DurableFile.read`, in bytes.
        case tooLarge(limit: Int)
        /// A symlink on the way to a file where none is followed.
        case linked
        /// A folder of a file system of that name, whose files the kernel generates.
        case pseudo(String)
        /// A file that its folder's `SourceRule` leaves out, where another was examined before.
        case ruledOut
    }

    /// The call by its manual page's name, such as `open`.
    package var call: String
    /// The file of the call, if there was one.
    package var path: FilePath?
    /// The second file of `rename` and `link`.
    package var target: FilePath?
    package var code: Errno
    /// Set where this module refused a call that the kernel would have allowed; `code` is then `EINVAL`, `EFBIG`,
    /// `ELOOP`, `EOPNOTSUPP` or `EPERM`.
    package var refusal: Refusal?

    package init(
        call: String, path: FilePath? = nil, target: FilePath? = nil, code: Errno, refusal: Refusal? = nil
    ) {
        self.call = call
        self.path = path
        self.target = target
        self.code = code
        self.refusal = refusal
    }

    /// The error of the call that has just returned on this thread.
    static func last(_ call: String, _ path: FilePath? = nil, target: FilePath? = nil) -> SystemError {
        SystemError(call: call, path: path, target: target, code: Errno(rawValue: errno))
    }

    /// `open /srv/x: Permission denied; check that user 998 may read it`; names are escaped for terminals and logs.
    package var description: String {
        var text = call
        if let path { text += " \(path.display)" }
        if let target { text += " to \(target.display)" }
        text += ": \(cause)"
        if let remedy { text += "; \(remedy)" }
        return text
    }

    private var cause: String {
        switch refusal {
        case .notRegular: "not a regular file"
        case .tooLarge(let limit): "larger than \(limit) bytes"
        case .linked: "a symlink is on the way, and Inlet does not follow it"
        case .pseudo(let kind): "on \(kind), whose files the kernel makes up"
        case .ruledOut: "its owner or its number of names has changed since it was checked"
        case nil: code.description
        }
    }
}

extension SystemError {
    /// Nothing is at that path (`ENOENT`, `ENOTDIR`), or only through a symlink, which does not count.
    package var isMissing: Bool { code == .noSuchFileOrDirectory || code == .notDirectory || isLinked }

    /// A symlink is on the way, and is not followed.
    package var isLinked: Bool { refusal == .linked }

    /// A folder of the kernel's own file systems.
    package var isPseudo: Bool { if case .pseudo? = refusal { true } else { false } }

    /// No file can have such a name there (`ENAMETOOLONG` for a name, not a path): it is longer than the file system
    /// allows.
    package var isUnnameable: Bool {
        guard code == .fileNameTooLong, let path else { return false }
        return path.lastComponent.map { $0.bytes.count > FilePath.Component.longest } ?? false
    }

    /// The disk or the quota is full (`ENOSPC`, `EDQUOT`), except for inotify's `ENOSPC`, which means its watch limit.
    package var isFull: Bool { !isWatchLimit && (code == .noSpace || code == .diskQuotaExceeded) }

    /// The kernel's limit of inotify watches for this user is reached.
    package var isWatchLimit: Bool { call == "inotify_add_watch" && code == .noSpace }

    /// Not allowed (`EACCES`, `EPERM`).
    package var isPermission: Bool { code == .permissionDenied || code == .notPermitted }

    /// The process or the system has no descriptors or memory left (`EMFILE`, `ENFILE`, `ENOMEM`, `ENOBUFS`).
    package var isShortage: Bool {
        [.tooManyOpenFiles, .tooManyOpenFilesInSystem, .noMemory, .noBufferSpace].contains(code)
    }

    /// The device failed (`EIO`).
    package var isDeviceFault: Bool { code == .ioError }

    /// Something has that name already (`EEXIST`).
    package var isTaken: Bool { code == .fileExists }

    /// The file is a symlink, FIFO, socket, device or folder.
    package var isNotRegular: Bool { refusal == .notRegular }
}

extension SystemError {
    /// The remedy, without a full stop; nil where the cause says it all.
    package var remedy: String? {
        switch refusal {
        case .notRegular: "remove it or add it to 'ignore': Inlet delivers regular files only"
        case .tooLarge: "check that this is the right file"
        case .linked: "replace the symlink by a folder"
        case .ruledOut: "give it the owner and the single name that 'owners' and 'hard_links' require"
        case .pseudo: "unmount it there, or watch another folder"
        case nil: hostRemedy ?? watchRemedy ?? spaceRemedy ?? accessRemedy ?? otherRemedy
        }
    }

    private var hostRemedy: String? {
        if call == ContentReader.call {
            return "libmagic failed on its content: move the file away, or give its routes no media types"
        }
        guard call == ProcessHost.call else { return nil }
        if code == .execFormatError { return "install inlet-host of this version beside inlet, or remove it" }
        return code == .notPermitted
            ? "restart the agent: its configuration did not name this program when it started"
            : "restart the agent: its helper that starts programs has ended"
    }

    private var watchRemedy: String? {
        switch (call, code) {
        case ("inotify_add_watch", .noSpace):
            "raise the limit: \(WatchNeed(directories: 0).remedy) (and keep it in /etc/sysctl.d)"
        case ("inotify_init1", .tooManyOpenFiles):
            "raise the limit: \(WatchNeed.instanceRemedy(needed: 0)) (and keep it in /etc/sysctl.d)"
        case ("fanotify_init", .tooManyOpenFiles): "raise the limit: sysctl fs.fanotify.max_user_groups=1024"
        case ("fanotify_init", _), ("fanotify_mark", _), ("name_to_handle_at", _), ("open_by_handle_at", _):
            fanotifyRemedy
        default: nil
        }
    }

    // fanotify_init(2), fanotify_mark(2), open_by_handle_at(2)
    private var fanotifyRemedy: String? {
        switch code {
        case .notPermitted where call == "open_by_handle_at": "it needs CAP_DAC_READ_SEARCH in the first user namespace"
        case .notPermitted: "it needs CAP_SYS_ADMIN in the first user namespace"
        case .noFunction: "this kernel was built without fanotify"
        case .invalidArgument: "it needs Linux 5.9"
        case .improperLink: "a btrfs subvolume cannot be marked as a file system"
        case .operationNotSupportedByDevice: "the file system has no number of its own"
        case .notSupported: "the file system has no handles for its folders"
        case .staleNFSFileHandle: "the file system's handles do not lead back to its folders"
        default: nil
        }
    }

    private var spaceRemedy: String? {
        switch code {
        case .noSpace: "free space on that file system"
        case .diskQuotaExceeded: "raise the quota of user \(getuid()) or remove files"
        case .tooManyOpenFiles: "raise LimitNOFILE of the service (ulimit -n) or lower the number of connections"
        case .tooManyOpenFilesInSystem: "raise the limit: sysctl fs.file-max"
        case .noMemory: "free memory or raise MemoryMax of the service"
        case .fileTooLarge: "the file system cannot hold a file of that size"
        default: nil
        }
    }

    /// Whether we gave up the right ourselves: access(2) tells what would be allowed otherwise.
    private var isOfConfinement: Bool {
        guard isOfLandlock, ProcessHost.kept != nil, let path else { return false }
        func may(_ path: FilePath, _ mode: CInt) -> Bool { path.withPlatformString { access($0, mode) } == 0 }
        if ["open", "opendir"].contains(call), may(path, F_OK) { return may(path, R_OK) }
        return may(DurableFile.parent(of: path), W_OK | X_OK)
    }

    /// Landlock's rules cover opening, creating, moving and removing (landlock(7)). Looking at a file, and watching a
    /// folder, depend only on their modes.
    var isOfLandlock: Bool {
        switch call {
        case "open", "opendir", "create", "mkdir", "rename", "link", "symlink", "unlink", "truncate": true
        default: false
        }
    }

    private var accessRemedy: String? {
        switch code {
        case .permissionDenied where isOfConfinement:
            "restart the agent if this was added, created or mounted since its start, when it gave up all other access "
                + "(landlock:)"
        case .permissionDenied: "check that user \(getuid()) may \(deed)"
        case .notPermitted: "check the owner and the attributes (lsattr) of the file and its folder"
        case .readOnlyFileSystem: "mount the file system for writing, or choose another folder"
        default: nil
        }
    }

    private var otherRemedy: String? {
        switch code {
        case .ioError: "check dmesg and the disk's health: the device reports errors"
        case .fileNameTooLong: "shorten the name; most file systems take 255 bytes"
        case .improperLink: "the two folders are on different file systems"
        case .tooManySymbolicLinkLevels: "use its target instead: Inlet does not follow symlinks"
        case .staleNFSFileHandle: "mount the share again, unless the file was deleted on the server"
        case .fileExists where call == "rename": "remove or rename the file that is there; nothing was overwritten"
        default: nil
        }
    }

    private var deed: String {
        switch call {
        case "open", "read", "stat", "statfs": "read it"
        case "opendir", "getdents", "inotify_add_watch": "list that folder"
        case "create", "mkdir", "rename", "link", "unlink": "write to that folder"
        default: "do that"
        }
    }
}
