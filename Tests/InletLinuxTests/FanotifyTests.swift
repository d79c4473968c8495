import Foundation
import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

/// Why the kernel lets this process have no fanotify for a file system of its own; nil when it does.
private let fanotifyRefusal: String? = {
    do {
        let folder = try TemporaryDirectory()
        let mount = try TestMount("tmpfs", at: folder.path)
        defer { mount.unmount() }
        let fanotify = try Fanotify()
        try fanotify.mark(folder.path)
        let reader = try HandleReader(folder.path)
        _ = try reader.find(try reader.ownHandle())
        return nil
    } catch {
        return "\(error)"
    }
}()

/// With the real calls, on a file system that nobody else writes to; skipped, and seen to be, where this process may not make
/// them.
@Suite(.enabled(if: fanotifyRefusal == nil, "\(fanotifyRefusal ?? "")"))
struct FanotifyTests {
    let folder: TemporaryDirectory
    private let mount: TestMount

    init() throws {
        folder = try TemporaryDirectory()
        mount = try TestMount("tmpfs", at: folder.path)
    }

    @Test func `one mark tells of folders that were not there, by the handle they have`() throws {
        let fanotify = try Fanotify()
        try fanotify.mark(folder.path)
        let deep = try folder.makeDirectory("a/b")
        // Under its own name from the start: what is written without one is closed without one.
        try create(deep.appending("file"))
        try DurableFile.rename(deep.appending("file"), to: folder.path.appending("moved"))
        let moved = Array("moved".utf8)
        let reader = try HandleReader(folder.path)
        let inner = try HandleReader(deep).ownHandle()
        let outer = try reader.ownHandle()
        let records = try read(
            fanotify,
            until: {
                let last = $0.parts(cookie: 1).last?.place
                return last?.name == moved && last?.directory == outer
            })
        #expect(
            records.contains {
                $0.place?.directory == inner && $0.place?.name == Array("file".utf8)
                    && $0.mask.contains(.closedAfterWriting)
            })
        #expect(try reader.find(inner)?.path.lastComponent == "b")
        #expect(try reader.find(inner)?.identity.inode == directory(deep)?.inode)
        try FileManager.default.removeItem(atPath: deep.string)
        #expect(try reader.find(inner) == nil)
    }

    @Test func `a renamed folder is found under its new name by the same handle`() throws {
        let old = try folder.makeDirectory("old")
        let handle = try HandleReader(old).ownHandle()
        try DurableFile.rename(old, to: folder.path.appending("new"))
        let reader = try HandleReader(folder.path)
        #expect(try reader.find(handle)?.path == reader.own().path.appending("new"))
    }

    @Test func `records end a wait that is for something else`() throws {
        let fanotify = try Fanotify()
        let inotify = try Inotify()
        let waker = try Waker()
        try fanotify.mark(folder.path)
        try folder.write([1], to: "a")
        let bound = ContinuousClock.now.advanced(by: .seconds(120))
        #expect(try inotify.wait(until: bound, waker: waker, other: fanotify.source).isReadable)
        #expect(try !fanotify.isDrained)
    }

    @Test func `what does not fit in the queue is lost, and one record says so`() throws {
        let limit = try? DurableFile.read("/proc/sys/fs/fanotify/max_queued_events", limit: 64)
        let most = limit.flatMap { Int(String(decoding: $0, as: UTF8.self).filter(\.isNumber)) } ?? 16_384
        let fanotify = try Fanotify()
        try fanotify.mark(folder.path)
        // Folders: one record each, while a file's end may be told later, when a child that has just started holds it open.
        for number in 0..<(most + 10) { _ = try folder.makeDirectory(FilePath("\(number)")) }
        var (count, losses) = (0, 0)
        while true {
            let batch = try fanotify.read()
            if batch.isEmpty { break }
            count += batch.count
            losses += batch.count(where: \.isOverflow)
        }
        #expect(losses == 1 && count == most + 1)
    }

    @Test func `a path that is no folder, or not there, is refused`() throws {
        let fanotify = try Fanotify()
        let file = try folder.write([1], to: "file")
        for path in [file, folder.path.appending("none")] {
            var caught: SystemError?
            do throws(SystemError) { try fanotify.mark(path) } catch { caught = error }
            #expect(caught?.isMissing == true, "\(path): \(String(describing: caught))")
        }
    }

    @Test func `a mount has one number for all of its folders`() throws {
        let inner = try folder.makeDirectory("in")
        #expect(try MountTable.number(of: folder.path) == MountTable.number(of: inner))
        #expect(try MountTable.number(of: folder.path) != MountTable.number(of: "/proc"))
    }

    private func read(
        _ fanotify: borrowing Fanotify, until isLast: (FanotifyRecord) -> Bool
    ) throws -> [FanotifyRecord] {
        var records: [FanotifyRecord] = []
        while true {
            let batch = try fanotify.read()
            // What a call has done is queued before it returns.
            try #require(!batch.isEmpty, "\(records.count) records, but not the last one")
            if let last = batch.firstIndex(where: isLast) { return records + batch[...last] }
            records += batch
        }
    }

    private func create(_ path: FilePath) throws {
        try FileDescriptor.open(path, .writeOnly, options: [.create, .closeOnExec], permissions: .ownerReadWrite)
            .close()
    }

    private func directory(_ path: FilePath) throws -> FileIdentity? {
        guard case .directory(let identity) = try FileLook.look(at: path) else { return nil }
        return identity
    }
}
