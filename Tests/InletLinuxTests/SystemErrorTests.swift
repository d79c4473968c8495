import InletCore
import SystemPackage
import Testing

@testable import InletLinux

struct SystemErrorTests {
    @Test(arguments: [
        ("open", Errno.permissionDenied, "check that user \(ProcessSetup.userID) may read it"),
        ("create", .permissionDenied, "may write to that folder"),
        ("inotify_add_watch", .noSpace, "sysctl fs.inotify.max_user_watches="),
        ("inotify_init1", .tooManyOpenFiles, "sysctl fs.inotify.max_user_instances="),
        ("fanotify_init", .tooManyOpenFiles, "sysctl fs.fanotify.max_user_groups="),
        ("fanotify_init", .notPermitted, "CAP_SYS_ADMIN"),
        ("fanotify_init", .noFunction, "without fanotify"),
        ("fanotify_init", .invalidArgument, "Linux 5.9"),
        ("fanotify_mark", .notPermitted, "CAP_SYS_ADMIN"),
        ("fanotify_mark", .improperLink, "btrfs subvolume"),
        ("fanotify_mark", .operationNotSupportedByDevice, "no number of its own"),
        ("name_to_handle_at", .notSupported, "no handles"),
        ("open_by_handle_at", .notPermitted, "CAP_DAC_READ_SEARCH"),
        ("write", .noSpace, "free space"),
        ("open", .tooManyOpenFiles, "LimitNOFILE"),
        ("create", .readOnlyFileSystem, "mount the file system for writing"),
        ("write", .diskQuotaExceeded, "quota of user"),
        ("rename", .fileNameTooLong, "shorten the name"),
        ("read", .ioError, "dmesg"),
    ])
    func `a common failure comes with its remedy`(call: String, code: Errno, remedy: String) {
        let text = SystemError(call: call, path: "/srv/x", code: code).description
        #expect(text.hasPrefix("\(call) /srv/x: \(code.description); "))
        #expect(text.contains(remedy), "\(text)")
    }

    @Test(arguments: [
        ("open", true), ("opendir", true), ("create", true), ("rename", true), ("unlink", true), ("mkdir", true),
        ("stat", false), ("inotify_add_watch", false), ("statfs", false), ("getdents", false), ("chmod", false),
    ])
    func `a folder that its owner locked is not taken for one that the agent gave up`(call: String, isOfLandlock: Bool)
    {
        #expect(SystemError(call: call, path: "/srv/x", code: .permissionDenied).isOfLandlock == isOfLandlock)
    }

    @Test func `a watch limit is not a full disk`() {
        let error = SystemError(call: "inotify_add_watch", path: "/srv", code: .noSpace)
        #expect(error.isWatchLimit)
        #expect(!error.isFull)
        #expect(SystemError(call: "write", path: "/srv/x", code: .noSpace).isFull)
        #expect(SystemError(call: "write", path: "/srv/x", code: .diskQuotaExceeded).isFull)
    }

    @Test func `names cannot forge lines or colours`() {
        let error = SystemError(call: "open", path: "/a\n\u{1B}[31m", target: FilePath(bytes: [0xFF]), code: .ioError)
        #expect(error.description.hasPrefix("open /a\\x0A\\x1B[31m to \\xFF: "))
    }
}
