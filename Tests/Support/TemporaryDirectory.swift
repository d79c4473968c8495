import Foundation
package import SystemPackage

/// A folder of the test's own, removed with everything in it when the last reference goes.
package final class TemporaryDirectory: Sendable {
    package let path: FilePath

    /// Makes `$TMPDIR/inlet-XXXXXXXX`; the name is short because Unix socket paths have at most 107 bytes.
    package init() throws {
        let base = ProcessInfo.processInfo.environment["TMPDIR"] ?? "/tmp"
        path = FilePath(base).appending("inlet-" + String(UInt32.random(in: .min ... .max), radix: 36))
        try FileManager.default.createDirectory(atPath: path.string, withIntermediateDirectories: true)
    }

    /// In memory where there is a place for that: thousands of syncs cost nothing there.
    package static func inMemory() throws -> TemporaryDirectory {
        let memory = FilePath("/dev/shm")
        guard FileManager.default.isWritableFile(atPath: memory.string) else { return try TemporaryDirectory() }
        let path = memory.appending("inlet-" + String(UInt32.random(in: .min ... .max), radix: 36))
        try FileManager.default.createDirectory(atPath: path.string, withIntermediateDirectories: true)
        return TemporaryDirectory(existing: path)
    }

    /// A folder that is there already, such as that of a process that was killed; removed in the same way.
    package init(existing path: FilePath) { self.path = path }

    deinit { try? FileManager.default.removeItem(atPath: path.string) }

    /// Writes `bytes` to `name` below the folder, making the folders in between, and returns the path.
    @discardableResult
    package func write(_ bytes: some Sequence<UInt8>, to name: FilePath) throws -> FilePath {
        let file = path.pushing(name)
        try FileManager.default.createDirectory(
            atPath: file.removingLastComponent().string, withIntermediateDirectories: true)
        try Data(bytes).write(to: URL(fileURLWithPath: file.string))
        return file
    }

    /// Makes a folder `name` below this one and returns its path.
    @discardableResult
    package func makeDirectory(_ name: FilePath) throws -> FilePath {
        let folder = path.pushing(name)
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
        return folder
    }
}
