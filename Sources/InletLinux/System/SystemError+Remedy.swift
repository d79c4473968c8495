import Glibc
import SystemPackage

extension SystemError {
    /// What a person can do, without a full stop; nil where the cause says it all.
    package var remedy: String? {
        switch refusal {
        case .notRegular: "only regular files are taken; remove it or name it in 'ignore'"
        case .tooLarge: "check that this is the right file"
        case .linked: "put a folder in its place"
        case .ruledOut: "give it the owner and the one name that 'owners' and 'hard_links' ask for"
        case .pseudo: "unmount it there, or watch another folder"
        case nil: hostRemedy ?? watchRemedy ?? spaceRemedy ?? accessRemedy ?? otherRemedy
        }
    }

    private var hostRemedy: String? {
        guard call == ProcessHost.call else { return nil }
        return code == .notPermitted
            ? "that is no program of the configuration that the agent was started with"
            : "the process that starts programs for the agent has ended; restart the agent"
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

    /// Whether it is we who gave it up: access(2) says what would be allowed otherwise.
    private var isOfConfinement: Bool {
        guard isOfLandlock, ProcessHost.current != nil, let path else { return false }
        func may(_ path: FilePath, _ mode: CInt) -> Bool { path.withPlatformString { access($0, mode) } == 0 }
        if ["open", "opendir"].contains(call), may(path, F_OK) { return may(path, R_OK) }
        return may(DurableFile.parent(of: path), W_OK | X_OK)
    }

    /// landlock(7): its rules are of opening, making, moving and removing. Who may look at a file, or watch a folder, is
    /// told by nothing but their modes.
    var isOfLandlock: Bool {
        switch call {
        case "open", "opendir", "create", "mkdir", "rename", "link", "symlink", "unlink", "truncate": true
        default: false
        }
    }

    private var accessRemedy: String? {
        switch code {
        case .permissionDenied where isOfConfinement:
            "the agent keeps only what its configuration named at its start (landlock:); restart it if this was named, made "
                + "or mounted since"
        case .permissionDenied: "check that user \(getuid()) may \(deed)"
        case .notPermitted: "check the owner and the attributes (lsattr) of the file and its folder"
        case .readOnlyFileSystem: "mount the file system for writing, or choose another folder"
        default: nil
        }
    }

    private var otherRemedy: String? {
        switch code {
        case .ioError: "the device reports errors: look at dmesg and at the disk's health"
        case .fileNameTooLong: "shorten the name; most file systems take 255 bytes"
        case .improperLink: "the two folders are on different file systems"
        case .tooManySymbolicLinkLevels: "it is a symlink, and symlinks are not followed"
        case .staleNFSFileHandle: "the file is gone from the server, or the share must be mounted again"
        case .fileExists where call == "rename": "nothing was overwritten; remove or rename the one that is there"
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
