import Glibc
import Synchronization
package import SystemPackage

/// A bound datagram socket in the file system: the far side of sd_notify(3) and of the system's journal.
package final class DatagramSocket: Sendable {
    package let path: FilePath
    private let number: CInt
    private let messages = Mutex<[String]>([])

    package convenience init(at path: FilePath) throws {
        try self.init(Array(path.string.utf8) + [0], path: path)
    }

    /// One that has a name and no file (unix(7)).
    package convenience init(abstract name: String) throws {
        try self.init([0] + name.utf8, path: FilePath("@" + name))
    }

    private init(_ bytes: [UInt8], path: FilePath) throws {
        self.path = path
        number = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let length = socklen_t(MemoryLayout<sa_family_t>.size + bytes.count)
        let code = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(number, $0, length)
            }
        }
        guard code == 0 else { throw Errno(rawValue: errno) }
    }

    /// The datagram that waits, nil without one.
    package func receive() -> String? {
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = recv(number, &bytes, bytes.count, CInt(MSG_DONTWAIT))
        return count < 0 ? nil : String(decoding: bytes[..<count], as: UTF8.self)
    }

    /// Every datagram so far, for who takes none of them by `receive`.
    package var all: [String] {
        messages.withLock { messages in
            while let next = receive() { messages.append(next) }
            return messages
        }
    }

    /// The descriptor that came with the datagram that waits; nil without one. Its owner closes it.
    package func receiveDescriptor() -> CInt? {
        // struct cmsghdr: its length, SOL_SOCKET, SCM_RIGHTS, then the descriptor, with room to align it.
        var control = [UInt64](repeating: 0, count: 3)
        return control.withUnsafeMutableBytes { room in
            var message = msghdr()
            message.msg_control = room.baseAddress
            message.msg_controllen = room.count
            guard recvmsg(number, &message, CInt(MSG_DONTWAIT)) >= 0, message.msg_controllen >= 20 else { return nil }
            return room.load(fromByteOffset: 16, as: CInt.self)
        }
    }

    deinit { close(number) }
}
