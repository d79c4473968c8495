import CLinux
import Glibc
package import InletCore
package import SystemPackage

/// An open folder. Names looked at and changed through it are in this very folder, even if it, or a folder above it, is
/// moved or replaced.
///
/// It prevents unmounting its file system, so hold it for a turn or a delivery, never while idle.
package final class Folder: Sendable {
    /// Its path when it was opened: for people, and for errors.
    package let path: FilePath
    private let descriptor: Descriptor

    private init(_ descriptor: consuming Descriptor, _ path: FilePath) {
        self.descriptor = descriptor
        self.path = path
    }

    /// Opens a folder that an administrator named. On the way only symlinks of root and of our own user are followed:
    /// others may come from the owner of a folder in between. Throws `isLinked` for those. Blocks.
    package convenience init(_ path: FilePath, way: PathResolver = .here) throws(SystemError) {
        self.init(try way.open(path), path)
    }

    /// Opens the folder that `path` leads to for any program: for a file that a person named by its full path.
    package convenience init(following path: FilePath) throws(SystemError) {
        let way = path.isEmpty ? "." : path
        self.init(try Descriptor(opening: way, inlet_o_path | O_DIRECTORY), path)
    }

    /// Opens a folder below this one, or this one for an empty path. Follows no symlink and never leaves this folder:
    /// throws `isLinked` for a symlink, `EINVAL` for `..` and absolute paths. Blocks.
    package func folder(_ relative: FilePath, way: PathResolver = .here) throws(SystemError) -> Folder {
        if relative.isEmpty { return self }
        return Folder(try way.open(relative, below: descriptor.number, path), path.pushing(relative))
    }

    /// The same, creating missing folders, each synced into its parent. `mode` is subject to the umask.
    ///
    /// - Parameter asFolderOwner: folders created by root belong to the owner of their parent.
    package func folder(
        _ relative: FilePath, making mode: UInt32, asFolderOwner: Bool = false
    ) throws(SystemError) -> Folder {
        do throws(SystemError) {
            return try folder(relative)
        } catch  where error.code == .noSuchFileOrDirectory {
            var folder = self
            for name in relative.components { folder = try folder.child(name, making: mode, asFolderOwner) }
            return folder
        }
    }

    /// Opens the folder at `path` as `init` does, creating missing folders. Blocks.
    package static func making(
        _ path: FilePath, mode: UInt32, asFolderOwner: Bool = false
    ) throws(SystemError) -> Folder {
        do throws(SystemError) {
            return try Folder(path)
        } catch  where error.code == .noSuchFileOrDirectory && DurableFile.parent(of: path) != path {
            let above = try making(DurableFile.parent(of: path), mode: mode, asFolderOwner: asFolderOwner)
            guard let name = path.lastComponent else { throw error }
            return try above.child(name, making: mode, asFolderOwner)
        }
    }

    private func child(
        _ name: FilePath.Component, making mode: UInt32, _ asFolderOwner: Bool
    ) throws(SystemError) -> Folder {
        let relative = FilePath(root: nil, [name])
        do throws(SystemError) {
            return try folder(relative)
        } catch  where error.code == .noSuchFileOrDirectory {
            do throws(SystemError) {
                _ = try SystemCall.result("mkdir", path.appending(name)) {
                    name.withPlatformString { mkdirat(descriptor.number, $0, mode_t(mode)) }
                }
            } catch  where error.isTaken {
                return try folder(relative)
            }
            if asFolderOwner { try at(name) { FileOwner.give($0, toOwnerOf: own) } }
            try synchronize()
            return try folder(relative)
        }
    }

    // MARK: - Names in it

    /// The file of that name, without following symlinks. Blocks.
    package func look(_ name: FilePath.Component) throws(SystemError) -> FileLook {
        do throws(SystemError) {
            return FileLook(try status(name))
        } catch  where error.isMissing {
            return .missing
        }
    }

    func status(_ name: FilePath.Component) throws(SystemError) -> stat {
        var status = stat()
        let number = descriptor.number
        _ = try SystemCall.result("stat", path.appending(name)) {
            name.withPlatformString { fstatat(number, $0, &status, AT_SYMLINK_NOFOLLOW) }
        }
        return status
    }

    /// The file that the path's last name, which begins at `start`, has in this folder. Blocks.
    func look(endOf file: FilePath, from start: Int) throws(SystemError) -> FileLook {
        var status = stat()
        let number = descriptor.number
        do throws(SystemError) {
            _ = try SystemCall.result("stat", shown(endOf: file)) {
                file.withPlatformString { fstatat(number, $0 + start, &status, AT_SYMLINK_NOFOLLOW) }
            }
            return FileLook(status)
        } catch  where error.isMissing {
            return .missing
        }
    }

    /// Opens the same for reading, without following a symlink and, where allowed, without changing its access time.
    func open(endOf file: FilePath, from start: Int, _ flags: CInt) throws(SystemError) -> Descriptor {
        try Descriptor(
            readingQuietly: file, from: start, in: descriptor.number, flags | O_NOFOLLOW, shown: shown(endOf: file))
    }

    /// For errors.
    func shown(endOf file: FilePath) -> FilePath { file.lastComponent.map { path.appending($0) } ?? path }

    /// The folder's own attributes.
    package func identity() throws(SystemError) -> FileIdentity { try descriptor.status(path).identity }

    /// Its file system; nil where the kernel does not say. May block like `FileSystemKind.of`.
    package var kind: FileSystemKind? { FileSystemKind(of: descriptor.number) }

    /// Reads its names. Blocks.
    package func list() throws(SystemError) -> DirectoryStream {
        try DirectoryStream(
            Descriptor(readingQuietly: ".", in: descriptor.number, O_DIRECTORY, call: "opendir", shown: path), path)
    }

    /// Opens a file for reading, without following a symlink and, where allowed, without changing its access time.
    func open(_ name: FilePath.Component, _ flags: CInt) throws(SystemError) -> Descriptor {
        try Descriptor(
            readingQuietly: FilePath(root: nil, [name]), in: descriptor.number, flags | O_NOFOLLOW,
            shown: path.appending(name))
    }

    // MARK: - Calls that take a path

    /// Makes a call on a name in this folder by a path that leads here and nowhere else, and is useless after the call.
    /// Errors name the file's place.
    package func at<Value: ~Copyable>(
        _ name: FilePath.Component, _ body: (FilePath) throws(SystemError) -> Value
    ) throws(SystemError) -> Value {
        defer { withExtendedLifetime(self) {} }
        do throws(SystemError) { return try body(own.appending(name)) } catch { throw named(error) }
    }

    /// The same for the folder itself.
    package func itself<Value: ~Copyable>(
        _ body: (FilePath) throws(SystemError) -> Value
    ) throws(SystemError) -> Value {
        defer { withExtendedLifetime(self) {} }
        do throws(SystemError) { return try body(own) } catch { throw named(error) }
    }

    /// The same for calls that do not throw, or return errors of their own: `named` gives those their place.
    package func apart<Value: ~Copyable, Failure: Error>(
        _ body: (FilePath) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        defer { withExtendedLifetime(self) {} }
        return try body(own)
    }

    /// The error of such a call in words that a person understands.
    package func named(_ error: SystemError) -> SystemError {
        var error = error
        error.path = error.path.map(named)
        error.target = error.target.map(named)
        return error
    }

    /// The target of such a path.
    package func named(_ place: FilePath) -> FilePath {
        var rest = place
        return rest.removePrefix(own) ? path.pushing(rest) : place
    }

    /// Through proc(5) the kernel continues from the folder open here. Where `/proc` is not mounted there is only the
    /// path.
    private var own: FilePath {
        if Self.hasProcess { return FilePath("/proc/self/fd/\(descriptor.number)/.") }
        return path.isEmpty ? "." : path
    }

    private static let hasProcess = access("/proc/self/fd", X_OK) == 0
}

/// Changes to the names in a folder. Every call blocks.
extension Folder {
    /// Renames a file on the same file system and never overwrites, as `DurableFile.rename`.
    package func rename(
        _ name: FilePath.Component, to folder: Folder, _ target: FilePath.Component
    ) throws(SystemError) {
        try at(name) { (from) throws(SystemError) in
            try folder.at(target) { (to) throws(SystemError) in try DurableFile.rename(from, to: to) }
        }
    }

    /// Removes a file (not a folder). Durable after `synchronize`.
    package func remove(_ name: FilePath.Component) throws(SystemError) {
        try at(name) { (path) throws(SystemError) in try DurableFile.remove(path) }
    }

    /// Writes a small file, as `DurableFile.write`.
    package func write(
        _ bytes: [UInt8], to name: FilePath.Component, mode: UInt32, asFolderOwner: Bool = false
    ) throws(SystemError) {
        try at(name) { (path) throws(SystemError) in
            try DurableFile.write(bytes, to: path, mode: mode, asFolderOwner: asFolderOwner)
        }
    }

    /// Writes a small file where nothing is, as `DurableFile.create`.
    package func create(_ bytes: [UInt8], as name: FilePath.Component, mode: UInt32) throws(SystemError) {
        try at(name) { (path) throws(SystemError) in try DurableFile.create(bytes, at: path, mode: mode) }
    }

    /// The content of a small file, symlinks not followed. Throws `EFBIG` with `.tooLarge` above `limit` bytes.
    package func read(_ name: FilePath.Component, limit: Int) throws(SystemError) -> [UInt8] {
        let source = try SourceFile(opening: name, in: self)
        // Allocates no more than there is.
        return try source.content(limit: source.opened.size > Int64(limit) ? limit : Int(source.opened.size))
    }

    /// `fsync(2)`, which makes the folder's names durable where the file system can.
    package func synchronize() throws(SystemError) {
        try itself { (path) throws(SystemError) in try DurableFile.syncDirectory(path) }
    }

    /// Whether names can be created and removed in it, as far as the kernel can tell beforehand.
    package func requireWritable() throws(SystemError) {
        try itself { (path) throws(SystemError) in try DurableFile.requireWritable(path) }
    }
}

extension Folder {
    /// The longest name in bytes that its file system surely takes (`statvfs(3)`); never more than most have. Some
    /// count letters, and take longer ones. Blocks.
    package var longestName: Int {
        let all = FilePath.Component.longest
        var status = statvfs()
        let isKnown = apart { path in path.withPlatformString { statvfs($0, &status) } == 0 }
        // Network file systems may answer with 0.
        return isKnown && status.f_namemax >= 64 ? min(Int(clamping: status.f_namemax), all) : all
    }

    /// Whether its file system can have such a name at all, found out by looking it up.
    package func canHold(_ name: FilePath.Component) throws(SystemError) -> Bool {
        do throws(SystemError) {
            _ = try look(name)
            return true
        } catch  where error.code == .fileNameTooLong {
            return false
        }
    }
}
