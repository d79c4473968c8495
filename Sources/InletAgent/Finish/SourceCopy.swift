internal import InletCore
internal import InletLinux
internal import SystemPackage

/// A copy of a source on another file system: compared with what was read, and only then does the source go.
enum SourceCopy {
    /// - Parameters:
    ///   - identity: what `file` was when it was judged; nothing has changed its ctime since.
    ///   - copy: the name that its copy has until it is whole, in the folder of `target`. The caller has journaled it: to look
    ///     for what a process left that died would take longer with every file in an archive.
    /// - Throws: also where `target` was taken meanwhile; the source is where it was.
    static func copy(
        _ file: OpenName, _ identity: FileIdentity, to target: OpenName, by copy: OpenName
    ) throws {
        let source = try file.source()
        _ = try FileCopy.copy(
            source, toTemporaryIn: target.folder, name: target.name, as: copy.name, isCancelled: { Task.isCancelled },
            progress: { _ in })
        do {
            guard try isSame(source, copy), source.opened == identity,
                try source.identity() == source.opened
            else {
                throw SystemError(call: "copy", path: file.path, target: target.path, code: .ioError)
            }
            try copy.rename(to: target)
        } catch {
            // What is left of it has its name in the intent, and goes at the next try.
            try? copy.remove()
            throw error
        }
        try target.folder.synchronize()
    }

    /// Whether `target` is a whole copy of `file`, made before the process died, or a second name of it, where a rename is a link
    /// and an unlink.
    static func isFinished(_ target: OpenName, of file: OpenName) throws -> Bool {
        guard let copy = try target.look().identity, let source = try file.look().identity else { return false }
        if copy.isFile(source) { return true }
        guard copy.isKnown(as: source), copy.device != source.device else { return false }
        return try isSame(try file.source(), target)
    }

    /// Compares the source with the copy as the disk holds it.
    private static func isSame(_ source: SourceFile, _ copy: OpenName) throws -> Bool {
        var reader = try UncachedReader.open(copy.name, in: copy.folder)
        let comparison = Comparison(source)
        while try reader.next({ comparison.add($0) }) {
            if Task.isCancelled { throw CancellationError() }
        }
        return try comparison.isSame()
    }
}

/// Holds chunks of a copy, as the disk gives them back, against the source.
private final class Comparison {
    private let source: SourceFile
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 16)
    private var offset: Int64 = 0
    private var isEqual = true
    private var failure: SystemError?

    init(_ source: SourceFile) { self.source = source }
    deinit { buffer.deallocate() }

    /// Whether all of the source was compared, and equal. One that could not be read is not another content.
    func isSame() throws(SystemError) -> Bool {
        if let failure { throw failure }
        return isEqual && offset == source.opened.size
    }

    func add(_ chunk: UnsafeRawBufferPointer) {
        var rest = chunk[...]
        while isEqual, failure == nil, !rest.isEmpty {
            let room = UnsafeMutableRawBufferPointer(rebasing: buffer[..<min(buffer.count, rest.count)])
            let count: Int
            do throws(SystemError) {
                count = try source.read(into: room, at: offset)
            } catch {
                failure = error
                return
            }
            isEqual = count > 0 && rest.prefix(count).elementsEqual(room[..<count])
            rest = rest.dropFirst(count)
            offset += Int64(count)
        }
    }
}

extension SystemError {
    var isCrossDevice: Bool { code == .improperLink }
}
