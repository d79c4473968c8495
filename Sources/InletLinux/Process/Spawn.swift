import CLinux
import Glibc
import SystemPackage

/// `posix_spawn(3)`: the child begins as a new program, and there is no moment in which it is a copy of us.
enum Spawn {
    /// Starts `child` with the given standard input and error; its standard output goes nowhere.
    ///
    /// - Returns: its number, which is its process group's too.
    static func start(_ child: ChildProcess, input: CInt, errors: CInt) throws(SystemError) -> pid_t {
        let process: pid_t
        if let (folder, base) = child.writesTo {
            // What a thread has given up, it and what it starts never get back.
            process = try LoopThread.result(name: "spawn") { () throws(SystemError) in
                try Landlock.holdWrites(to: folder, below: base)
                // Where the kernel does not let us, the folder is what holds it, as before.
                do throws(SystemError) { try CallFilter.apply(to: .thread) } catch {}
                return try begin(child, input: input, errors: errors)
            }
        } else {
            process = try begin(child, input: input, errors: errors)
        }
        restrain(process, child)
        return process
    }

    private static func begin(_ child: ChildProcess, input: CInt, errors: CInt) throws(SystemError) -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO)
        // Ours are all O_CLOEXEC; what a library has opened may not be.
        _ = inlet_spawn_close_from(&actions, 3)

        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // What we block and ignore would be blocked and ignored in the new program as well.
        var (none, all) = (sigset_t(), sigset_t())
        sigemptyset(&none)
        sigfillset(&all)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &all)
        // A group of its own, and no terminal of whoever started us, into which it could type.
        let flags = inlet_spawn_setsid | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF
        posix_spawnattr_setflags(&attributes, Int16(flags))

        let program = child.arguments.first ?? ""
        let arguments = CStrings(child.arguments.map { Array($0.utf8) })
        let environment = CStrings(child.environment.map { Array($0.name.utf8) + [UInt8(ascii: "=")] + $0.value })
        var process: pid_t = 0
        let code = withExtendedLifetime((arguments, environment)) {
            posix_spawn(&process, program, &actions, &attributes, arguments.pointers, environment.pointers)
        }
        guard code == 0 else {
            throw SystemError(call: "posix_spawn", path: FilePath(program), code: Errno(rawValue: code))
        }
        return process
    }

    /// At once, rather than in between: there is no moment in which the child is a copy of us. It writes nothing of size
    /// before it has read its own libraries.
    private static func restrain(_ process: pid_t, _ child: ChildProcess) {
        if child.niceness > 0 || child.largestFile != nil {
            _ = inlet_restrain(process, child.niceness, child.largestFile ?? -1)
        }
        if child.yieldsMemory { yieldMemory(process) }
    }

    /// Everybody may do this to its own children; without `/proc` it is left.
    private static func yieldMemory(_ process: pid_t) {
        let file = open("/proc/\(process)/oom_score_adj", O_WRONLY | O_CLOEXEC)
        guard file >= 0 else { return }
        defer { close(file) }
        let most = Array("1000".utf8)
        _ = Glibc.write(file, most, most.count)
    }
}

/// A list of C strings with a null pointer at its end. Bytes from a NUL on are left out.
private final class CStrings {
    let pointers: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
    private let count: Int

    init(_ texts: [[UInt8]]) {
        count = texts.count
        pointers = .allocate(capacity: count + 1)
        for (index, text) in texts.enumerated() {
            let copy = UnsafeMutablePointer<CChar>.allocate(capacity: text.count + 1)
            for (offset, byte) in text.enumerated() { copy[offset] = CChar(bitPattern: byte) }
            copy[text.count] = 0
            pointers[index] = copy
        }
        pointers[count] = nil
    }

    deinit {
        for index in 0..<count { pointers[index]?.deallocate() }
        pointers.deallocate()
    }
}
