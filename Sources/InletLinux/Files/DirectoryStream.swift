import Glibc
package import SystemPackage

/// One name in a folder.
package struct DirectoryEntry: Sendable, Hashable {
    package enum Kind: Sendable, Hashable {
        case directory
        case regular
        case symlink
        /// A FIFO, socket or device.
        case other
        /// Gone, or unreadable, between listing and looking.
        case unknown
    }

    /// The name's bytes from the kernel: neither empty nor `.` nor `..`.
    package let name: FilePath.Component
    package let kind: Kind
}

/// Reads a folder name by name, in no order; memory does not grow with the folder. Not for two threads at once.
package struct DirectoryStream: ~Copyable {
    private let path: FilePath
    private let stream: OpaquePointer

    /// Opens a folder, without following a symlink in the last component and, where allowed, without changing its
    /// access time. Blocks.
    package init(_ path: FilePath) throws(SystemError) {
        try self.init(Descriptor(readingQuietly: path, O_DIRECTORY | O_NOFOLLOW, call: "opendir"), path)
    }

    init(_ descriptor: consuming Descriptor, _ path: FilePath) throws(SystemError) {
        // closedir(3) closes the number it was given, so it gets its own.
        let duplicate = try SystemCall.result("opendir", path) { fcntl(descriptor.number, F_DUPFD_CLOEXEC, 0) }
        guard let stream = fdopendir(duplicate) else {
            let error = SystemError.last("opendir", path)
            close(duplicate)
            throw error
        }
        self.path = path
        self.stream = stream
    }

    deinit { closedir(stream) }

    /// The next name, nil at the end. Names that come or go while reading may or may not be seen (readdir(3)). Blocks.
    package mutating func next() throws(SystemError) -> DirectoryEntry? {
        while let (start, kind) = try read() {
            if let name = FilePath.Component(platformString: start) { return DirectoryEntry(name: name, kind: kind) }
        }
        return nil
    }

    /// Adds the next names to `run`, at most `most`. Blocks.
    ///
    /// - Returns: false at the end of the folder.
    package mutating func next(_ most: Int, to run: inout NameRun) throws(SystemError) -> Bool {
        for _ in 0..<most {
            guard let (start, kind) = try read() else { return false }
            run.add(start, kind)
        }
        return true
    }

    /// The next name, valid until the one after it is read; nil at the end. Neither `.` nor `..`.
    private mutating func read() throws(SystemError) -> (UnsafePointer<CChar>, DirectoryEntry.Kind)? {
        while true {
            try SystemCall.injected("getdents", path)
            errno = 0
            guard let entry = readdir(stream) else {
                if errno == 0 { return nil }
                throw SystemError.last("getdents", path)
            }
            guard let start = UnsafeRawPointer(entry).advanced(byName: \.d_name), start[0] != 0,
                strcmp(start, ".") != 0, strcmp(start, "..") != 0
            else { continue }
            return (start, kind(entry.pointee.d_type, start))
        }
    }

    // Some file systems omit the type (DT_UNKNOWN): then one stat tells it.
    private func kind(_ type: UInt8, _ name: UnsafePointer<CChar>) -> DirectoryEntry.Kind {
        switch Int(type) {
        case Int(DT_REG): return .regular
        case Int(DT_DIR): return .directory
        case Int(DT_LNK): return .symlink
        case Int(DT_UNKNOWN):
            var status = stat()
            guard fstatat(dirfd(stream), name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { return .unknown }
            return switch status.st_mode & S_IFMT {
            case S_IFREG: .regular
            case S_IFDIR: .directory
            case S_IFLNK: .symlink
            default: .other
            }
        default: return .other
        }
    }
}

extension UnsafeRawPointer {
    fileprivate func advanced(byName field: PartialKeyPath<dirent>) -> UnsafePointer<CChar>? {
        MemoryLayout<dirent>.offset(of: field).map { (self + $0).assumingMemoryBound(to: CChar.self) }
    }
}

/// Names of one folder, handed out in the order of their bytes. A folder of a million files lists them in hash order,
/// in which every file would touch another page of the journal's indices.
///
/// Limits the names held at once, so that memory does not grow with the folder: a bigger one comes in several such
/// runs.
package struct NameRun: Sendable {
    package static let most = 131_072
    /// Room for that many usual names; a tenth of that many of the longest.
    private static let mostBytes = 3 << 20
    /// A bigger folder takes its room at once: growing step by step holds each name twice.
    private static let usual = 4096

    private let most: Int
    /// Each with its NUL.
    private var bytes: [CChar] = []
    /// Descending once sorted: the next is the last.
    private var items: [(start: UInt32, kind: DirectoryEntry.Kind)] = []
    private var isSorted = false

    package init(most: Int = Self.most) { self.most = most }

    package var isFull: Bool { items.count >= most || bytes.count >= Self.mostBytes }

    mutating func add(_ name: UnsafePointer<CChar>, _ kind: DirectoryEntry.Kind) {
        if items.count == Self.usual, !isFull {
            items.reserveCapacity(most)
            bytes.reserveCapacity(Self.mostBytes + Int(NAME_MAX) + 1)
        }
        items.append((UInt32(bytes.count), kind))
        bytes.append(contentsOf: UnsafeBufferPointer(start: name, count: strlen(name) + 1))
    }

    /// From here on names are handed out.
    package mutating func sort() {
        bytes.withUnsafeBufferPointer { bytes in
            guard let first = bytes.baseAddress else { return }
            items.sort { strcmp(first + Int($0.start), first + Int($1.start)) > 0 }
        }
        isSorted = true
    }

    /// The next name; nil while names are being added, and once when all were handed out.
    package mutating func next() -> DirectoryEntry? {
        guard isSorted else { return nil }
        while let item = items.popLast() {
            let name = bytes.withUnsafeBufferPointer { bytes in
                bytes.baseAddress.flatMap { FilePath.Component(platformString: $0 + Int(item.start)) }
            }
            if let name { return DirectoryEntry(name: name, kind: item.kind) }
        }
        empty()
        return nil
    }

    /// Forgets the names added.
    package mutating func empty() { self = NameRun(most: most) }
}
