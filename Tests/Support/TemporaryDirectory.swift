import Foundation
import Glibc
package import SystemPackage

/// A folder of the test's own, removed with everything in it when the last reference goes, or with the process.
package final class TemporaryDirectory: Sendable {
    package let path: FilePath

    package init() throws {
        path = try RunFolder.onDisk.get().next()
        try FileManager.default.createDirectory(atPath: path.string, withIntermediateDirectories: true)
    }

    /// In memory where there is a place for that: thousands of syncs cost nothing there.
    package static func inMemory() throws -> TemporaryDirectory {
        guard let path = RunFolder.inMemory?.next() else { return try TemporaryDirectory() }
        try FileManager.default.createDirectory(atPath: path.string, withIntermediateDirectories: true)
        return TemporaryDirectory(existing: path)
    }

    /// A folder that is there already, such as that of a process that was killed; removed in the same way.
    package init(existing path: FilePath) { self.path = path }

    /// A file system that is still mounted in it, whose owner goes after it, is taken off.
    deinit { RunFolder.remove(path) }

    /// Writes `bytes` to `name` below the folder, making the folders in between, and returns the path.
    @discardableResult
    package func write(_ bytes: some Sequence<UInt8>, to name: FilePath) throws -> FilePath {
        let file = path.pushing(name)
        try FileManager.default.createDirectory(
            atPath: file.removingLastComponent().string, withIntermediateDirectories: true)
        try Data(Array(bytes)).write(to: URL(fileURLWithPath: file.string))
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

/// Has two names change places, by renameat2(2) with RENAME_EXCHANGE, which Foundation's view of the C library leaves out.
package func exchange(_ one: FilePath, _ other: FilePath) -> Bool {
    typealias Call = @convention(c) (CInt, UnsafePointer<CChar>, CInt, UnsafePointer<CChar>, CUnsignedInt) -> CInt
    guard let symbol = dlsym(dlopen(nil, RTLD_NOW), "renameat2") else { return false }
    return unsafeBitCast(symbol, to: Call.self)(AT_FDCWD, one.string, AT_FDCWD, other.string, 2) == 0
}
