import Testing

@testable import InletAgent

@Suite struct WarmUpTests {
    @Test func `code is given back after 8, 64, 512 … and no other number`() {
        #expect((1...40_000).filter(WarmUp.isDue) == [8, 64, 512, 4096, 32_768])
    }
}
