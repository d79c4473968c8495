internal import InletCore
internal import InletLinux
internal import SystemPackage

/// Moves to another file system: copied, compared with what was read, and only then removed.
enum AcrossFileSystems {
    static func move(_ path: FilePath, to wanted: FilePath, admitted: FileIdentity) throws -> FilePath {
        let source = try SourceFile(opening: path)
        guard let name = wanted.lastComponent else { throw SystemError(call: "rename", path: wanted, code: .isDirectory) }
        let directory = wanted.removingLastComponent()
        let copy = try FileCopy.copy(
            source, toTemporaryIn: directory, name: name, isCancelled: { false }, progress: { _ in })
        do {
            guard try isSame(source, copy), try source.identity().isUntouched(since: admitted, ignoringChangeTime: true)
            else { throw SystemError(call: "copy", path: path, target: wanted, code: .ioError) }
            let target = try SourceDisposal.renameNumbered(copy, to: wanted, from: 1)
            try DurableFile.syncDirectory(directory)
            try DurableFile.remove(path)
            return target
        } catch {
            try? DurableFile.remove(copy)
            throw error
        }
    }

    private static func isSame(_ source: SourceFile, _ copy: FilePath) throws -> Bool {
        var reader = try UncachedReader(copy)
        let comparison = Comparison(source)
        while try reader.next({ comparison.add($0) }) {}
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
