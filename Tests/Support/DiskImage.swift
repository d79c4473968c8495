package import Foundation
package import SystemPackage

/// A disk or card for tests: a file system in a file, with a UUID and a label of its own. Unmounted when the last reference
/// goes.
package final class DiskImage {
    private let directory: TemporaryDirectory
    private let image: FilePath
    private let format: Format?
    private var points: [FilePath] = []
    private var devices: [FilePath] = []

    package enum Format: String {
        case ext4, exfat
    }

    /// Whether exFAT can be mounted here, by the kernel or a program.
    package static let hasExFAT: Bool = {
        let tools = ["/usr/sbin/mkfs.exfat", "/usr/sbin/mount.exfat-fuse"].filter {
            FileManager.default.isExecutableFile(atPath: $0)
        }
        return tools.count == 2 || tools.first == "/usr/sbin/mkfs.exfat" && kernelHasExFAT
    }()

    private static let kernelHasExFAT =
        (try? String(contentsOfFile: "/proc/filesystems", encoding: .utf8))?.contains("\texfat\n") ?? false

    /// Whether this machine lets us make such disks and mount them.
    package static let isAvailable: Bool = {
        guard getuid() == 0, let disk = try? DiskImage(label: "test"), let folder = try? TemporaryDirectory() else {
            return false
        }
        return (try? disk.mount(at: folder.makeDirectory("point"))) != nil
    }()

    /// - Parameters:
    ///   - label: at most 16 bytes.
    ///   - blockSize: nil is what the tool finds right.
    ///   - format: nil for an empty disk.
    package init(label: String, megabytes: UInt64 = 4, blockSize: Int? = nil, format: Format? = .ext4) throws {
        directory = try TemporaryDirectory()
        image = directory.path.appending("image")
        self.format = format
        try Data().write(to: URL(fileURLWithPath: image.string))
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: image.string))
        try file.truncate(atOffset: megabytes << 20)
        try file.close()
        try reformat(label: label, blockSize: blockSize)
    }

    /// Makes an empty file system on it, with another UUID.
    package func reformat(label: String, blockSize: Int? = nil) throws {
        let blocks = blockSize.map { ["-b", String($0)] } ?? []
        switch format {
        case .ext4: try Self.run("mkfs.ext4", ["-q", "-F", "-L", label] + blocks + [image.string])
        case .exfat: try Self.run("mkfs.exfat", "-L", label, image.string)
        case nil: break
        }
    }

    deinit {
        for point in points { _ = try? Self.run("umount", "-l", point.string) }
        for device in devices {
            _ = try? Self.run("umount", "-A", device.string)
            // The next image on this device would inherit it.
            _ = try? Self.run("blockdev", "--setrw", device.string)
            _ = try? Self.run("losetup", "-d", device.string)
        }
    }

    /// What is on the disk.
    package var bytes: Data { get throws { try Data(contentsOf: URL(fileURLWithPath: image.string)) } }

    /// Replaces bytes of the medium below the file system, while it is mounted or out: no time of a file changes.
    package func overwrite(_ old: Data, with new: Data) throws {
        guard let place = try bytes.range(of: old)?.lowerBound else { throw Failed(what: "the disk has no such bytes") }
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: image.string))
        try file.seek(toOffset: UInt64(place))
        try file.write(contentsOf: new)
        try file.close()
    }

    /// Puts everything back as it was.
    package func restore(_ content: Data) throws {
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: image.string))
        try file.write(contentsOf: content)
        try file.close()
    }

    /// Whether the kernel holds its device read-only, whoever opens it.
    package static func isReadOnly(_ device: FilePath) throws -> Bool {
        try run("blockdev", "--getro", device.string).hasPrefix("1")
    }

    /// Puts it into a reader without mounting it. - Returns: its device.
    package func insert() throws -> FilePath {
        let said = try Self.run("losetup", "--find", "--show", image.string)
        let device = FilePath(said.filter { !$0.isWhitespace })
        devices.append(device)
        return device
    }

    /// Puts a file on the disk while it is out.
    package func write(_ bytes: some Sequence<UInt8>, to name: FilePath) throws {
        let point = try directory.makeDirectory("point")
        try mount(at: point)
        let file = point.pushing(name)
        try FileManager.default.createDirectory(
            atPath: file.removingLastComponent().string, withIntermediateDirectories: true)
        try Data(bytes).write(to: URL(fileURLWithPath: file.string))
        try unmount(point)
    }

    /// Whether a program of its own drives it.
    private var isServed: Bool { format == .exfat && !Self.kernelHasExFAT }

    package func mount(at point: FilePath, readOnly: Bool = false) throws {
        if isServed {
            // Without udev nothing else than its reader tells which card it is.
            let device = try devices.first ?? insert()
            // It stays behind as the file system's server: with a descriptor of ours, its start would never end.
            let detached =
                "for file in /proc/$$/fd/*; do number=${file##*/}; [ \"$number\" -gt 2 ] && "
                + "eval \"exec $number>&-\"; done 2>/dev/null; exec \"$@\" </dev/null >/dev/null"
            try Self.run(
                "bash", "-c", detached, "mount", "mount.exfat-fuse", "-o", readOnly ? "ro" : "rw", device.string,
                point.string)
        } else {
            try Self.run("mount", "-o", readOnly ? "loop,ro" : "loop", image.string, point.string)
        }
        points.append(point)
    }

    /// Takes it out. Who just looks at it does not keep it in.
    package func unmount(_ point: FilePath) throws {
        if (try? Self.run("umount", point.string)) == nil { try Self.run("umount", "-l", point.string) }
        points.removeAll { $0 == point }
    }

    /// Takes it out in the middle of everything: whoever has something open may read on.
    package func pullGently(_ point: FilePath) throws {
        try Self.run("umount", "-l", point.string)
        points.removeAll { $0 == point }
    }

    /// Pulls it out while it is in use: from now on every read of an open file fails with EIO. Needs python3.
    package func pull(_ point: FilePath) throws {
        // EXT4_IOC_SHUTDOWN without flushing the journal; a mere lazy unmount would let open files be read on.
        let script = "import fcntl,os,sys; fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587D, b'\\2\\0\\0\\0')"
        try Self.run("python3", "-c", script, point.string)
        try Self.run("umount", "-l", point.string)
        points.removeAll { $0 == point }
    }

    /// From now on every read of the medium fails with EIO, while it stays mounted and the kernel's caches answer.
    package func fail() throws {
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: image.string))
        try file.truncate(atOffset: 0)
        try file.close()
    }

    /// The folder that has the file.
    package var folder: FilePath { directory.path }

    /// Whether nobody holds anything of it any more, so that it can be mounted anew.
    package var isOut: Bool { (try? Self.run("losetup", "-j", image.string))?.isEmpty ?? false }

    @discardableResult
    private static func run(_ program: String, _ arguments: String...) throws -> String { try run(program, arguments) }

    @discardableResult
    private static func run(_ program: String, _ arguments: [String]) throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [program] + arguments
        process.environment = ["PATH": "/usr/sbin:/sbin:/usr/bin:/bin"]
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        let said = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failed(what: "\(program) \(arguments)") }
        return said
    }

    private struct Failed: Error {
        let what: String
    }
}
