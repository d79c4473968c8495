import Glibc
import SystemPackage

/// The queue of inotify(7) or fanotify(7): whole records, as many as fit, and never a part of one.
enum KernelRecords {
    private static let room = 64 << 10

    /// The records that wait in the queue `number`, as `parse` understands them; empty when there are none. Does not block.
    static func read<Record>(
        _ number: CInt, _ parse: (UnsafeRawBufferPointer) -> [Record]
    ) throws(SystemError) -> [Record] {
        try withUnsafeTemporaryAllocation(byteCount: room, alignment: 8) { (buffer) throws(SystemError) in
            do throws(SystemError) {
                let count = try SystemCall.result("read") { Glibc.read(number, buffer.baseAddress, buffer.count) }
                return parse(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            } catch  where error.code == .resourceTemporarilyUnavailable {
                return []
            }
        }
    }
}
