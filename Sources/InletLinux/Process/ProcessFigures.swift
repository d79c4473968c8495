import Glibc
import InletCore
import SystemPackage

/// What this process uses of the machine; nil where the kernel does not say.
package struct ProcessFigures: Sendable, Equatable {
    /// Memory that is in RAM now, shared pages included.
    package var residentBytes: Int64?
    package var openDescriptors: Int?
    /// By all its threads since it began, in user and kernel mode.
    package var processorTime: Duration?

    /// As they are now. Reads below `/proc`, which blocks on no disk.
    package static func now() -> ProcessFigures {
        ProcessFigures(residentBytes: resident(), openDescriptors: descriptors(), processorTime: processor())
    }

    /// The second number of `/proc/self/statm`, in pages (proc_pid_statm(5)).
    private static func resident() -> Int64? {
        guard let bytes = try? DurableFile.read("/proc/self/statm", limit: 256) else { return nil }
        let fields = bytes.split(separator: UInt8(ascii: " "))
        guard fields.count > 1, let pages = Int64(String(decoding: fields[1], as: UTF8.self)) else { return nil }
        return pages * Int64(sysconf(Int32(_SC_PAGESIZE)))
    }

    private static func descriptors() -> Int? {
        do throws(SystemError) {
            var names = try DirectoryStream("/proc/self/fd")
            var count = 0
            while try names.next() != nil { count += 1 }
            // Without the one that lists them.
            return count - 1
        } catch {
            return nil
        }
    }

    private static func processor() -> Duration? {
        var time = timespec()
        guard clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) == 0 else { return nil }
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}
