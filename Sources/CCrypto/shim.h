#pragma once

// The hash functions below EVP keep their state in a struct and allocate nothing, for which OpenSSL 3.0 calls them deprecated.
#define OPENSSL_SUPPRESS_DEPRECATED

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/md5.h>
#include <openssl/sha.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INLET_GCM_NONCE 12
#define INLET_GCM_TAG 16

/// AES-256-GCM (NIST SP 800-38D): `sealed` takes `length` bytes, `tag` INLET_GCM_TAG; false when there is no memory.
static inline bool inlet_gcm_seal(
    const uint8_t *_Nonnull key, const uint8_t *_Nonnull nonce, const uint8_t *_Nullable beside,
    size_t beside_length, const uint8_t *_Nullable plain, size_t length, uint8_t *_Nullable sealed,
    uint8_t *_Nonnull tag
) {
    int count = 0;
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    bool done = context && EVP_EncryptInit_ex(context, EVP_aes_256_gcm(), NULL, key, nonce) == 1 &&
        EVP_EncryptUpdate(context, NULL, &count, beside, (int)beside_length) == 1 &&
        EVP_EncryptUpdate(context, sealed, &count, plain, (int)length) == 1 &&
        EVP_EncryptFinal_ex(context, sealed + count, &count) == 1 &&
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, INLET_GCM_TAG, tag) == 1;
    EVP_CIPHER_CTX_free(context);
    return done;
}

/// The same back; false also for what was not sealed with this key, nonce and text beside.
static inline bool inlet_gcm_open(
    const uint8_t *_Nonnull key, const uint8_t *_Nonnull nonce, const uint8_t *_Nullable beside,
    size_t beside_length, const uint8_t *_Nullable sealed, size_t length, const uint8_t *_Nonnull tag,
    uint8_t *_Nullable plain
) {
    int count = 0;
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    bool done = context && EVP_DecryptInit_ex(context, EVP_aes_256_gcm(), NULL, key, nonce) == 1 &&
        EVP_DecryptUpdate(context, NULL, &count, beside, (int)beside_length) == 1 &&
        EVP_DecryptUpdate(context, plain, &count, sealed, (int)length) == 1 &&
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_SET_TAG, INLET_GCM_TAG, (void *)tag) == 1 &&
        EVP_DecryptFinal_ex(context, plain + count, &count) == 1;
    EVP_CIPHER_CTX_free(context);
    return done;
}
