import Foundation
import Glibc
import InletLinux
import Synchronization
package import SystemPackage

/// Where one process keeps the folders of its tests.
///
/// What is left in it goes when the process ends. What a process that was killed has left goes when the next one makes
/// such a folder, or ends: whose folder is not locked any more is gone.
package final class RunFolder: Sendable {
    static let onDisk = Result {
        try RunFolder.make(in: FilePath(ProcessInfo.processInfo.environment["TMPDIR"] ?? "/tmp"))
    }
    /// nil where there is no place for files in memory.
    static let inMemory =
        FileManager.default.isWritableFile(atPath: "/dev/shm") ? try? RunFolder.make(in: "/dev/shm") : nil

    /// People and scripts have other folders of ours beside it, which nobody else removes.
    package static let prefix = "inlet-test-"
    private static let made = Mutex<[FilePath]>([])

    package let path: FilePath
    private let lock: FileLock
    private let count = Atomic<Int>(0)

    private init(_ path: FilePath, _ lock: consuming FileLock) {
        self.path = path
        self.lock = lock
    }

    /// Makes one in `base`, and removes there what dead processes have left.
    package static func make(in base: FilePath) throws -> RunFolder {
        sweep(base)
        for _ in 0..<10 {
            let path = base.appending(prefix + String(UInt32.random(in: .min ... .max), radix: 36))
            try FileManager.default.createDirectory(atPath: path.string, withIntermediateDirectories: true)
            // Not locked yet, it may be taken for a dead process's: then it is gone, and so would be what is put into it.
            guard let lock = try? FileLock(path.appending(lockName)), isThere(path.appending(lockName)) else {
                continue
            }
            note(path)
            return RunFolder(path, lock)
        }
        throw CocoaError(.fileWriteFileExists)
    }

    /// A path in it that nobody has yet; short, because those of Unix sockets have at most 107 bytes.
    func next() -> FilePath {
        path.appending(String(count.wrappingAdd(1, ordering: .relaxed).newValue, radix: 36))
    }

    /// Removes what dead processes have left in `base`.
    package static func sweep(_ base: FilePath) {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: base.string)) ?? []
        for name in names where name.hasPrefix(prefix) {
            let path = base.appending(name)
            guard isOwnFolder(path), let lock = try? FileLock(path.appending(lockName)) else { continue }
            remove(path)
            withExtendedLifetime(lock) {}
        }
    }

    /// Removes a folder with everything in it, but for what is mounted there: that is taken off first. Where that is not
    /// allowed the folder stays as it is.
    static func remove(_ path: FilePath) {
        guard let real = realpath(path.string, nil) else { return }
        defer { free(real) }
        let place = FilePath(platformString: real)
        for mount in mounts(at: place).reversed() { umount2(mount.point.string, Int32(MNT_DETACH)) }
        guard mounts(at: place).isEmpty else { return }
        try? FileManager.default.removeItem(atPath: path.string)
    }

    private static func mounts(at path: FilePath) -> [MountTable.Mount] {
        // Thousands of folders go in a run, and hardly any has a mount: the table is read as text first. It writes a space,
        // a tab, a newline and a backslash in its own way.
        let isPlain = path.string.utf8.allSatisfy { $0 > 0x20 && $0 != UInt8(ascii: "\\") }
        if isPlain, let table = try? DurableFile.read("/proc/self/mountinfo", limit: 8 << 20),
            Data(table).range(of: Data(path.string.utf8)) == nil
        {
            return []
        }
        return ((try? MountTable.current())?.mounts ?? []).filter { $0.point.starts(with: path) }
    }

    private static func note(_ path: FilePath) {
        let isFirst = made.withLock { made in
            made.append(path)
            return made.count == 1
        }
        if isFirst { atexit { RunFolder.removeMade() } }
    }

    private static func removeMade() {
        let paths = made.withLock(\.self)
        for path in paths { remove(path) }
        for base in Set(paths.map { $0.removingLastComponent() }) { sweep(base) }
    }

    private static let lockName: FilePath.Component = "lock"

    private static func isThere(_ path: FilePath) -> Bool { FileManager.default.fileExists(atPath: path.string) }

    /// Neither another user's nor a link to somewhere else.
    private static func isOwnFolder(_ path: FilePath) -> Bool {
        guard let facts = try? FileManager.default.attributesOfItem(atPath: path.string) else { return false }
        return facts[.type] as? FileAttributeType == .typeDirectory
            && (facts[.ownerAccountID] as? NSNumber)?.uint32Value == geteuid()
    }
}
