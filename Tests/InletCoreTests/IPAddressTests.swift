import InletCore
import Testing

@Suite struct IPAddressTests {
    @Test(
        arguments: [
            ("127.0.0.1", [127, 0, 0, 1]), ("0.0.0.0", [0, 0, 0, 0]), ("::ffff:10.0.0.1", [10, 0, 0, 1]),
            ("::1", [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
            ("fe80::1%eth0", [0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
            ("2001:db8:1:2:3:4:5:6", [0x20, 1, 0x0D, 0xB8, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6]),
            ("::", [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        ] as [(String, [UInt8])])
    func `an address is its bytes`(text: String, bytes: [UInt8]) throws {
        #expect(try #require(IPAddress(text)).bytes == bytes)
    }

    @Test(arguments: [
        "", "localhost", "1.2.3", "1.2.3.4.5", "256.1.1.1", "01.2.3.4", "1.2.3.-4", "1..2.3", ":::", "1::2::3",
        "12345::",
        "::g", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "[::1]", "::1.2.3", "+1.2.3.4",
    ])
    func `what is none is none`(text: String) {
        #expect(IPAddress(text) == nil)
    }

    @Test(arguments: [
        ("127.0.0.1", true), ("127.255.0.9", true), ("::1", true), ("::ffff:127.0.0.1", true), ("0.0.0.0", false),
        ("10.0.0.1", false), ("::", false), ("::2", false), ("1::1", false),
    ])
    func `only this machine is loopback`(text: String, isLoopback: Bool) {
        #expect(IPAddress(text)?.isLoopback == isLoopback)
    }

    @Test func `the addresses of one network count as one person`() {
        #expect(IPAddress("2001:db8::1")?.network == IPAddress("2001:db8::ffff:2")?.network)
        #expect(IPAddress("2001:db8::1")?.network != IPAddress("2001:db8:0:1::1")?.network)
        #expect(IPAddress("10.0.0.1")?.network != IPAddress("10.0.0.2")?.network)
    }
}
