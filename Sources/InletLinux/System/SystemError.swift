import Glibc
import InletCore
package import SystemPackage

/// A system call that failed: which one, on what, why, and what a person can do about it.
package struct SystemError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What was wrong where the kernel had no complaint of its own.
    package enum Refusal: Sendable, Hashable {
        /// A symlink, FIFO, socket, device or folder where only a regular file is taken.
        case notRegular
        /// A file above the limit that the caller gave to `DurableFile.read`, in bytes.
        case tooLarge(limit: Int)
        /// A symlink on the way to a file, where none is followed.
        case linked
        /// A folder of a file system of that name, whose files are the kernel's own answers.
        case pseudo(String)
        /// A file that its folder's `SourceRule` leaves out, in the place of the one that was looked at.
        case ruledOut
    }

    /// The call by its manual page's name, e.g. `open`.
    package var call: String
    /// The file it was made on, if there was one.
    package var path: FilePath?
    /// The second file of `rename` and `link`.
    package var target: FilePath?
    package var code: Errno
    /// Set where this module refused what the kernel would have allowed; `code` is then `EINVAL`, `EFBIG`, `ELOOP`,
    /// `EOPNOTSUPP` or `EPERM`.
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

    /// The error of the call that returned just now on this thread.
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
        case .linked: "a symlink is on the way there, and it is not followed"
        case .pseudo(let kind): "on \(kind), whose files are answers of the kernel"
        case .ruledOut: "it got another owner, or another name, since it was looked at"
        case nil: code.description
        }
    }
}

extension SystemError {
    /// Nothing is at that path (`ENOENT`, `ENOTDIR`), or nothing that may be called so: what a symlink leads to is elsewhere.
    package var isMissing: Bool { code == .noSuchFileOrDirectory || code == .notDirectory || isLinked }

    /// A symlink is on the way, and is not followed.
    package var isLinked: Bool { refusal == .linked }

    /// A folder of the kernel's own file systems.
    package var isPseudo: Bool { if case .pseudo? = refusal { true } else { false } }

    /// Nothing can have such a name there (`ENAMETOOLONG` of a name, not of a path): it is longer than those of its file system.
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
