internal import InletCore
internal import InletLinux
internal import SystemPackage

/// Moves to another file system: copied, compared with what was read, and only then removed.
enum AcrossFileSystems {
    /// - Returns: false when `target` was taken meanwhile; then the source is still where it was.
    static func move(_ path: FilePath, to target: FilePath, size: Int64) throws -> Bool {
        guard let name = target.lastComponent else {
            throw SystemError(call: "rename", path: target, code: .isDirectory)
        }
        let directory = target.removingLastComponent()
        FileCopy.removeLeftovers(of: name, in: directory)
        let source = try SourceFile(opening: path)
        let copy = try FileCopy.copy(
            source, toTemporaryIn: directory, name: name, isCancelled: { Task.isCancelled }, progress: { _ in })
        do {
            guard try isSame(source, copy), source.opened.size == size, try source.identity() == source.opened else {
                throw SystemError(call: "copy", path: path, target: target, code: .ioError)
            }
            try DurableFile.rename(copy, to: target)
        } catch {
            try? DurableFile.remove(copy)
            if let error = error as? SystemError, error.isTaken { return false }
            throw error
        }
        try DurableFile.syncDirectory(directory)
        Failpoint.moveCopied.reached()
        try DurableFile.remove(path)
        return true
    }

    /// Whether `target` is a whole copy of `path`, made before the process died.
    static func isFinishedCopy(_ target: FilePath, of path: FilePath) throws -> Bool {
        guard let copy = try FileLook.look(at: target).identity, let source = try FileLook.look(at: path).identity,
            copy.isKnown(as: source), copy.device != source.device
        else { return false }
        return try isSame(try SourceFile(opening: path), target)
    }

    /// Compares the source with the copy as the disk holds it.
    private static func isSame(_ source: SourceFile, _ copy: FilePath) throws -> Bool {
        var reader = try UncachedReader(copy)
        let comparison = Comparison(source)
        while try reader.next({ comparison.add($0) }) {
            if Task.isCancelled { throw CancellationError() }
        }
        return comparison.isSame
    }
}

/// Holds chunks of a copy, as the disk gives them back, against the source.
private final class Comparison {
    private let source: SourceFile
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 16)
    private var offset: Int64 = 0
    private var isEqual = true

    init(_ source: SourceFile) { self.source = source }
    deinit { buffer.deallocate() }

    /// Whether all of the source was compared, and equal.
    var isSame: Bool { isEqual && offset == source.opened.size }

    func add(_ chunk: UnsafeRawBufferPointer) {
        var rest = chunk[...]
        while isEqual, !rest.isEmpty {
            let room = UnsafeMutableRawBufferPointer(rebasing: buffer[..<min(buffer.count, rest.count)])
            let count = (try? source.read(into: room, at: offset)) ?? 0
            isEqual = count > 0 && rest.prefix(count).elementsEqual(room[..<count])
            rest = rest.dropFirst(count)
            offset += Int64(count)
        }
    }
}

extension SystemError {
    var isCrossDevice: Bool { code == .improperLink }
}
