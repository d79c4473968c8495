package import Foundation
package import SystemPackage

/// A terminal that a test is at: what a program on it draws can be read, and keys can be pressed (pty(7)).
package final class PseudoTerminal: Sendable {
    /// The terminal as programs open it.
    package let path: FilePath
    private let ours: FileDescriptor

    /// - Parameters:
    ///   - columns: how wide it is.
    ///   - rows: how many lines it has.
    package init(columns: Int, rows: Int) throws {
        let calls = try Calls()
        let number = calls.open(O_RDWR | O_NOCTTY | O_CLOEXEC)
        guard number >= 0, calls.grant(number) == 0, calls.unlock(number) == 0, let name = calls.name(of: number) else {
            throw Errno(rawValue: errno)
        }
        ours = FileDescriptor(rawValue: number)
        path = name
        let flags = fcntl(number, F_GETFL)
        guard fcntl(number, F_SETFL, flags | O_NONBLOCK) == 0 else { throw Errno(rawValue: errno) }
        try resize(columns: columns, rows: rows)
    }

    deinit { try? ours.close() }

    /// Says nothing to the programs on it: a test sends SIGWINCH itself.
    package func resize(columns: Int, rows: Int) throws {
        let stty = Process()
        stty.executableURL = URL(fileURLWithPath: "/usr/bin/stty")
        stty.arguments = ["-F", path.string, "cols", "\(columns)", "rows", "\(rows)"]
        stty.standardInput = FileHandle.nullDevice
        try stty.run()
        stty.waitUntilExit()
        guard stty.terminationStatus == 0 else { throw Errno.invalidArgument }
    }

    /// A handle that a program is given as its input and output.
    package func open() throws -> FileHandle {
        // It must not become the terminal of the tests themselves.
        let options = FileDescriptor.OpenOptions(rawValue: O_NOCTTY | O_CLOEXEC)
        let descriptor = try FileDescriptor.open(path, .readWrite, options: options)
        return FileHandle(fileDescriptor: descriptor.rawValue, closeOnDealloc: true)
    }

    /// Whether what is typed is shown.
    package func echoes() throws -> Bool { try has(ECHO) }

    /// Whether what is typed comes a line at a time, and not each key at once.
    package func readsLines() throws -> Bool { try has(ICANON) }

    private func has(_ flag: CInt) throws -> Bool {
        var state = termios()
        guard tcgetattr(ours.rawValue, &state) == 0 else { throw Errno(rawValue: errno) }
        return state.c_lflag & tcflag_t(flag) != 0
    }

    package func press(_ keys: String) throws { _ = try ours.writeAll(Array(keys.utf8)) }

    /// What was drawn since the last call; nothing when that is nothing, or when no program has it open.
    package func drawn() -> String {
        var (all, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 1 << 16))
        while let count = try? buffer.withUnsafeMutableBytes({ try ours.read(into: $0) }), count > 0 {
            all += buffer.prefix(count)
        }
        return String(decoding: all, as: UTF8.self)
    }
}

/// The calls of posix_openpt(3), which Foundation's view of the C library leaves out.
private struct Calls {
    typealias Number = @convention(c) (CInt) -> CInt
    typealias Name = @convention(c) (CInt, UnsafeMutablePointer<CChar>, Int) -> CInt

    let open: Number
    let grant: Number
    let unlock: Number
    private let name: Name

    init() throws {
        func find<Call>(_ name: String, as type: Call.Type) throws -> Call {
            guard let symbol = dlsym(nil, name) else { throw Errno.noFunction }
            return unsafeBitCast(symbol, to: type)
        }
        open = try find("posix_openpt", as: Number.self)
        grant = try find("grantpt", as: Number.self)
        unlock = try find("unlockpt", as: Number.self)
        // ptsname(3) has one place for all threads: tests side by side would get each other's terminal.
        name = try find("ptsname_r", as: Name.self)
    }

    func name(of number: CInt) -> FilePath? {
        var buffer = [CChar](repeating: 0, count: 128)
        return name(number, &buffer, buffer.count) == 0 ? FilePath(platformString: buffer) : nil
    }
}
