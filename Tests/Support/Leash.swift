import Foundation
import InletLinux
import SystemPackage

/// Programs that a test has started end with its process, however that ends.
///
/// Whoever starts one ends it. But who is killed ends nothing, and the kernel's way (`PR_SET_PDEATHSIG`) cannot be had
/// here: it watches the thread that started the program, and threads come and go. So a shell is told the program's number,
/// and kills it when the pipe from this process is closed.
package final class Leash: Sendable {
    /// nil where no shell can be started.
    private static let shared = try? Leash()

    private let pipe = Pipe()

    private init() throws {
        let shell = Process()
        shell.executableURL = URL(fileURLWithPath: "/bin/bash")
        shell.arguments = ["-c", Self.script]
        shell.standardInput = pipe
        (shell.standardOutput, shell.standardError) = (FileHandle.nullDevice, FileHandle.nullDevice)
        // Every program that is started later would hold the pipe open.
        let end = pipe.fileHandleForWriting.fileDescriptor
        guard fcntl(end, F_SETFD, FD_CLOEXEC) == 0 else { throw Errno(rawValue: errno) }
        try shell.run()
        try pipe.fileHandleForReading.close()
    }

    /// Has the process `id`, which runs, killed at the end of this one.
    package static func hold(_ id: Int32) {
        guard let shared, let born = birth(of: id) else { return }
        // Up to 4096 bytes are written as one (pipe(7)), whichever threads write.
        try? shared.pipe.fileHandleForWriting.write(contentsOf: Data("\(id) \(born)\n".utf8))
    }

    /// Whether a process still runs; one that has ended and was not collected does not.
    package static func isRunning(_ id: Int32) -> Bool {
        fields(of: id).map { $0.first != "Z" } ?? false
    }

    /// A number may be another process's later: its start tells them apart (proc_pid_stat(5), field 22).
    private static func birth(of id: Int32) -> Substring? { fields(of: id).flatMap { $0.count > 19 ? $0[19] : nil } }

    /// Those behind the name, which may have anything in it.
    private static func fields(of id: Int32) -> [Substring]? {
        guard let bytes = try? DurableFile.read(FilePath("/proc/\(id)/stat"), limit: 4096) else { return nil }
        let text = String(decoding: bytes, as: UTF8.self)
        guard let name = text.lastIndex(of: ")") else { return nil }
        return text[text.index(after: name)...].split(separator: " ")
    }

    /// Signals that end a run from the keyboard reach the shell too, which has still work to do then. A file that another test
    /// was just writing when the shell was started would be open for writing until the end of all tests. What is no file stays:
    /// Foundation takes the end of a socket that it gives each program for the end of that.
    private static let script = """
        trap '' HUP INT TERM
        for file in /proc/$$/fd/*; do
          number=${file##*/}
          [ -f "$file" ] && [ "$number" -gt 2 ] && eval "exec $number>&-" 2>/dev/null
        done
        held=
        while read -r id born; do held="$held $id:$born"; done
        for one in $held; do
          { read -r line </proc/"${one%:*}"/stat; } 2>/dev/null || continue
          set -- ${line##*) }
          [ "${20}" = "${one#*:}" ] && kill -KILL "${one%:*}"
        done
        """
}
