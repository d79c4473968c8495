import CLinux
import Glibc

/// Looks a host name up as every program on this machine does: `/etc/hosts`, then the name servers (getaddrinfo(3)).
package enum NameLookup {
    /// A name without an address, in the resolver's words.
    package struct Failure: Error, Sendable, Equatable, CustomStringConvertible {
        package let description: String
        /// Whether the name servers did not answer; otherwise they know no such name.
        package let isSilence: Bool
    }

    /// The addresses of `host`, each once, in the order in which a program would try them. Blocks, for half a minute
    /// where name servers do not answer.
    package static func addresses(of host: String) throws(Failure) -> [String] {
        var hints = addrinfo()
        hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, nil, &hints, &list)
        guard code == 0 else {
            let isSilence = [EAI_AGAIN, EAI_FAIL, EAI_SYSTEM].contains(code)
            throw Failure(description: String(cString: gai_strerror(code)), isSilence: isSilence)
        }
        defer { freeaddrinfo(list) }
        var found: [String] = []
        var next = list
        while let entry = next?.pointee {
            if let text = text(of: entry), !found.contains(text) { found.append(text) }
            next = entry.ai_next
        }
        return found
    }

    private static func text(of entry: addrinfo) -> String? {
        var room = [CChar](repeating: 0, count: Int(NI_MAXHOST))
        let code = getnameinfo(
            entry.ai_addr, entry.ai_addrlen, &room, socklen_t(room.count), nil, 0, NI_NUMERICHOST)
        guard code == 0 else { return nil }
        return String(decoding: room.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
