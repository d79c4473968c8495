import CLinux
import Glibc
import InletCore
import SystemPackage

/// Resolves a folder path without following strangers' symlinks.
package enum PathResolver: Sendable {
    /// With one system call (`openat2(2)`, Linux 5.6).
    case kernel
    /// Folder by folder: for older kernels, and for sandboxes that refuse unknown calls.
    case steps

    /// The method that this system supports.
    package static let here: PathResolver = {
        let number = ".".withPlatformString { inlet_open_below(AT_FDCWD, $0, flags, beneath) }
        guard number >= 0 else { return .steps }
        close(number)
        return .kernel
    }()

    private static let flags = inlet_o_path | O_DIRECTORY | O_CLOEXEC
    private static let noSymlinks: UInt64 = 4
    private static let beneath: UInt64 = 2 | 4 | 8

    /// Follows symlinks that root, or our own user, has made.
    func open(_ path: FilePath) throws(SystemError) -> Descriptor {
        if self == .kernel, !path.isEmpty,
            let found = try once(path, in: AT_FDCWD, Self.noSymlinks, path)
        {
            return found
        }
        let start = try Descriptor(opening: path.isAbsolute ? "/" : ".", inlet_o_path | O_DIRECTORY)
        var steps = FolderSteps(folder: start, mayFollow: true, shown: path)
        try steps.go(path)
        return steps.end()
    }

    /// Follows no symlink. `folder` is open, at `place`.
    func open(_ relative: FilePath, below folder: CInt, _ place: FilePath) throws(SystemError) -> Descriptor {
        let path = place.pushing(relative)
        guard !relative.isAbsolute, relative.components.allSatisfy({ $0.kind == .regular }) else {
            throw SystemError(call: "open", path: path, code: .invalidArgument)
        }
        // The kernel takes at most PATH_MAX at once, but a tree may be deeper.
        if self == .kernel, relative.length < Int(PATH_MAX) {
            guard let found = try once(relative, in: folder, Self.beneath, path) else { throw FolderSteps.linked(path) }
            return found
        }
        let start = try Descriptor(opening: ".", in: folder, inlet_o_path | O_DIRECTORY, shown: path)
        var steps = FolderSteps(folder: start, mayFollow: false, shown: path)
        try steps.go(relative)
        return steps.end()
    }

    /// nil where a symlink is in the way.
    private func once(
        _ path: FilePath, in folder: CInt, _ resolve: UInt64, _ shown: FilePath
    ) throws(SystemError) -> Descriptor? {
        do throws(SystemError) {
            return Descriptor(
                owning: try SystemCall.result("open", shown) {
                    path.withPlatformString { inlet_open_below(folder, $0, Self.flags, resolve) }
                })
        } catch  where error.code == .tooManySymbolicLinkLevels {
            return nil
        }
    }
}

/// Resolves folder by folder, each opened before the next is looked up: a symlink is recognised, whoever swaps it in.
struct FolderSteps: ~Copyable {
    fileprivate var folder: Descriptor
    /// Follows symlinks of root and of our own user.
    fileprivate let mayFollow: Bool
    fileprivate let shown: FilePath
    /// As many symlinks as the kernel follows.
    fileprivate var room = 40

    consuming func end() -> Descriptor { folder }

    static func linked(_ path: FilePath) -> SystemError {
        SystemError(call: "open", path: path, code: .tooManySymbolicLinkLevels, refusal: .linked)
    }

    mutating func go(_ path: FilePath) throws(SystemError) {
        var rest = Array(path.components.reversed())
        while let name = rest.popLast() {
            guard let target = try step(FilePath(root: nil, [name])) else { continue }
            if target.isAbsolute { folder = try Descriptor(opening: "/", inlet_o_path | O_DIRECTORY) }
            rest += target.components.reversed()
        }
    }

    /// - Returns: the target of the symlink that was found instead of a folder.
    private mutating func step(_ name: FilePath) throws(SystemError) -> FilePath? {
        do throws(SystemError) {
            folder = try Descriptor(
                opening: name, in: folder.number, inlet_o_path | O_DIRECTORY | O_NOFOLLOW, shown: shown)
            return nil
        } catch  where error.code == .notDirectory || error.code == .tooManySymbolicLinkLevels {
            let found = try Descriptor(opening: name, in: folder.number, inlet_o_path | O_NOFOLLOW, shown: shown)
            // Somebody has just replaced the symlink by a folder, which is as good as any.
            guard try found.status(shown).isDirectory else { return try follow(found) }
            folder = found
            return nil
        }
    }

    private mutating func follow(_ link: consuming Descriptor) throws(SystemError) -> FilePath? {
        let status = try link.status(shown)
        guard status.isSymlink else {
            throw SystemError(call: "open", path: shown, code: .notDirectory)
        }
        let isTrusted = status.st_uid == 0 || status.st_uid == geteuid()
        guard mayFollow, isTrusted else { throw Self.linked(shown) }
        guard room > 0 else { throw SystemError(call: "open", path: shown, code: .tooManySymbolicLinkLevels) }
        room -= 1
        return try SystemCall.target(ofLink: "", in: link.number, shown: shown)
    }
}
