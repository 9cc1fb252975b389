/* Names as c++filt (binutils) prints them. */
#include <stdlib.h>

#include "base/demangle.h"
#include "test.h"

MG_TEST(demangle_like_cxxfilt)
{
    static const struct {
        const char *name, *want;
    } cases[] = {
        {"_Z6kernelIfLi3EEvPT_i", "void kernel<float, 3>(float*, int)"},
        {"_Z3fooRA3_i", "foo(int (&) [3])"},
        {"_ZN12_GLOBAL__N_13barEv", "(anonymous namespace)::bar()"},
        {"_ZN43_GLOBAL__N__b4a9aba8_7_foo_cu_0f05dce5_17056kernelEPf", "(anonymous namespace)::kernel(float*)"},
        {"_Z4plusIJiffEEvDpRKT_", "void plus<int, float, float>(int const&, float const&, float const&)"},
        {"_Z4noneIJEEvDpT_", "void none<>()"},
        {"_Z3runIZ4mainEUliE_EvT_", "void run<main::{lambda(int)#1}>(main::{lambda(int)#1})"},
        {"_ZNK3Vec4normEv", "Vec::norm() const"},
        {"_ZN3VecC1Ei", "Vec::Vec(int)"},
        {"_ZNK1AcvbEv", "A::operator bool() const"},
        {"_Z1fM1AFviE", "f(void (A::*)(int))"},
        {"_Z3barI4EnumLS0_2EEvv", "void bar<Enum, (Enum)2>()"},
        {"_Z1gILb1ELj5ELln7EEvv", "void g<true, 5u, -7l>()"},
        {"_Z1fPFPFviEfE", "f(void (*(*)(float))(int))"},
        {"_Z1fPA10_A20_f", "f(float (*) [10][20])"},
        {"_Z1fIXadL_Z1gvEEEvv", "void f<&(g())>()"},
        {"_ZN6thrust10device_ptrIhEC1IhEEPT_",
         "thrust::device_ptr<unsigned char>::device_ptr<unsigned char>(unsigned char*)"},
        {"_Z1fILi3EEvSt17integral_constantIDtT_EXT_EE", "void f<3>(std::integral_constant<decltype (3), 3>)"},
        {"_ZNK2ns4plusIvEclIRiS3_EEDTplclgssr2ns2d7E7forwardIT_Efp_Eclgssr2ns2d7E7forwardIT0_Efp0_EEOS4_OS5_",
         "decltype (((::ns::d7::forward<int&>)({parm#1}))+((::ns::d7::forward<int&>)({parm#2}))) "
         "ns::plus<void>::operator()<int&, int&>(int&, int&) const"},
        {"_Z3addIifEDTplfp_fp0_ET_T0_", "decltype ({parm#1}+{parm#2}) add<int, float>(int, float)"},
        {"_Z4lessIiEDTgtfp_Li7EET_", "decltype (({parm#1}>(7))) less<int>(int)"},
        {"_Z3negIiEDTngdefp_EPT_", "decltype (-(*{parm#1})) neg<int>(int*)"},
        {"_Z4sizeIiEDTmlstT_fp_ES0_", "decltype ((sizeof (int))*{parm#1}) size<int>(int)"},
        {"_Z1gIiEDTclsrT_3getfp_Li2EEES0_", "decltype (int::get({parm#1}, 2)) g<int>(int)"},
        {"_Z1gIiEDTclgssr2nsE3getfp_EET_", "decltype ((::ns::get)({parm#1})) g<int>(int)"},
        {"_Z6half_kP6__halfDv4_f", "half_k(__half*, float __vector(4))"},
        /* packs in expressions, casts, members */
        {"_Z1fIJifEEDTcl1gspfp_EEDpT_", "decltype (g({parm#1}...)) f<int, float>(int, float)"},
        {"_Z1fIJifEEDTcl1gspclsr3stdE7forwardIT_Efp_EEEDpT_",
         "decltype (g((std::forward<int>)({parm#1}), (std::forward<float>)({parm#1}))) f<int, float>(int, float)"},
        {"_Z1gIJifEENSt9enable_ifIXeqsZT_Li2EEvE4typeEDpT_",
         "std::enable_if<(2)==(2), void>::type g<int, float>(int, float)"},
        {"_Z1fIJLi1ELi2EEEvNS_1sIJXspT_EEEE", "void f<1, 2>(f::s<1, 2>)"},
        {"_Z1gIiEDTcvlfp_ET_", "decltype ((long){parm#1}) g<int>(int)"},
        {"_Z1gIiEDTcvT__Li1ELi2EEES0_", "decltype ((int)(1, 2)) g<int>(int)"},
        {"_Z1gIiEDTtlT_Li1EEES0_", "decltype (int{1}) g<int>(int)"},
        {"_Z1gIiEDTscT_fp_ES0_", "decltype (static_cast<int>({parm#1})) g<int>(int)"},
        {"_Z1gIiEDTixfp_Li1EET_", "decltype ({parm#1}[1]) g<int>(int)"},
        {"_Z1gIiEDTpp_fp_ET_", "decltype (++{parm#1}) g<int>(int)"},
        {"_Z4sizeI1AEDTcldtfp_4sizeEET_", "decltype (({parm#1}.size)()) size<A>(A)"},
        {"_ZN1AcvT_IiEEv", "A::operator int<int>()"},
        {"_Z7checkedIiENSt9enable_ifIXsr3std9is_signedIT_EE5valueES1_E4typeES1_",
         "std::enable_if<std::is_signed<int>::value, int>::type checked<int>(int)"},
        /* what stands in a function, generic lambdas, T_ that means another one where it is named again */
        {"_ZZ1fIiET_S0_ENKUlvE_clEv", "f<int>(int)::{lambda()#1}::operator()() const"},
        {"_Z3runIZ4mainEUlRKT_E_EvS0_", "void run<main::{lambda(auto:1 const&)#1}>(main::{lambda(auto:1 const&)#1})"},
        {"_Z3runIZ4mainEUlDpRKT_E_EvT_",
         "void run<main::{lambda((auto:1 const&)...)#1}>(main::{lambda((auto:1 const&)...)#1})"},
        {"_ZlsIcE1ARS0_T_", "A operator<< <char>(A&, char)"},
        {"_Z1fIN1AIiJEEEJEEvT_", "void f<A<int>>(A<int>)"},
        {"_ZNSdC1EOSd", "std::basic_iostream<char, std::char_traits<char> >::basic_iostream(std::iostream&&)"},
        {"_ZN1AB5cxx11C1Ev", "A[abi:cxx11]::A()"},
        {"_Z1fSt8functionIFvA3_iEE", "f(std::function<void (int [3])>)"},
        {"_Z1fPDoFvvE", "f(void (*)() noexcept)"},
        {"_Z3fooPrii", "foo(int restrict*, int)"},
        {"_Z1fv.part.1", "f() [clone .part.1]"},
        {"_ZThn16_N1a1bEv", "non-virtual thunk to a::b()"},
        {"_ZTv0_n24_N1a1bEv", "virtual thunk to a::b()"},
        {"_ZGVZ1fvE1x", "guard variable for f()::x"},
        {"_ZTVN2ns1AE", "vtable for ns::A"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *got = mg_demangle(cases[i].name);
        MG_CHECK_STR(got, cases[i].want);
        free(got);
    }
}

MG_TEST(demangle_add_shortens)
{
    static const struct {
        const char *name, *want;
        size_t most;
    } cases[] = {
        {"_ZN2ns6kernelIfLi3EEEvPT_i", "void ns::kernel<float, 3>(float*, int)", 38},
        {"_ZN2ns6kernelIfLi3EEEvPT_i", "kernel<..>", 37},
        {"_ZN2ns6kernelEi", "kernel", 3},
        {"plain_c", "plain_c", 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mg_buf b = MG_BUF_INIT;
        mg_demangle_add(&b, cases[i].name, cases[i].most);
        MG_CHECK_STR(b.at, cases[i].want);
        mg_buf_release(&b);
    }
}

MG_TEST(demangle_refuses)
{
    static const char *const cases[] = {
        "main",          "", "_Z", "_ZN", "_Z3fo", "_Z1fS_", "_Z1fT_", "_Z1fIXsrE", "_Z99999999999999999999f", "_ZTX1A",
        "_Z1fIS0_S0_S0_"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) MG_CHECK(!mg_demangle(cases[i]));
}

/* Substitutions that double the text each time must end, not fill the memory. */
MG_TEST(demangle_is_bounded)
{
    char name[4096] = "_Z1f1AIiiE";
    size_t n = strlen(name);
    for (int i = 1; i < 60 && n < sizeof name - 64; i++) {
        char seq = (char)(i < 11 ? '0' + i - 1 : 'A' + i - 11);
        n += (size_t)snprintf(name + n, sizeof name - n, "1AIS%.*s_S%.*s_E", 1, &seq, 1, &seq);
    }
    free(mg_demangle(name));
    memset(name, 'P', sizeof name - 1);
    memcpy(name, "_Z1f", 4);
    name[sizeof name - 1] = 0;
    MG_CHECK(!mg_demangle(name));
}

/* Names with some characters of others: each is read or refused. */
MG_TEST(demangle_mutants)
{
    static const char *const names[] = {
        "_ZNK2ns4plusIvEclIRiS3_EEDTplclgssr2ns2d7E7forwardIT_Efp_Eclgssr2ns2d7E7forwardIT0_Efp0_EEOS4_OS5_",
        "_Z3runIZ4mainEUlDpRKT_E_EvT_",
        "_Z1gIJifEENSt9enable_ifIXeqsZT_Li2EEvE4typeEDpT_",
        "_Z1fIJifEEDTcl1gspclsr3stdE7forwardIT_Efp_EEEDpT_",
        "_ZN1AcvT_IiEEv",
        "_ZTv0_n24_N1a1bEv",
        "_Z1fSt8functionIFvA3_iEE"};
    uint64_t state = 7;
    for (unsigned round = 0; round < 60000; round++) {
        char name[256];
        const char *from = names[round % MG_COUNT_OF(names)];
        size_t n = strlen(from);
        memcpy(name, from, n + 1);
        for (unsigned i = 0; i < 1 + round % 5; i++) {
            state = state * 6364136223846793005ull + 1442695040888963407ull;
            const char *other = names[state >> 40 & 3];
            name[2 + (state >> 33) % (n - 2)] = other[(state >> 20) % strlen(other)];
        }
        free(mg_demangle(name));
    }
}

MG_TEST(name_matches)
{
    static const struct {
        const char *glob, *name;
        bool want;
    } cases[] = {
        {"kernel", "kernel", true},
        {"kern*", "kernel", true},
        {"kern", "kernel", false},
        {"_Z2tkIfLi3EEvPT_", "_Z2tkIfLi3EEvPT_", true},
        {"tk", "_Z2tkIfLi3EEvPT_", true},
        {"tk<float, 3>", "_Z2tkIfLi3EEvPT_", true},
        {"tk<*", "_Z2tkIfLi3EEvPT_", true},
        {"void tk<*", "_Z2tkIfLi3EEvPT_", true},
        {"tk<int*", "_Z2tkIfLi3EEvPT_", false},
        {"k", "_Z2tkIfLi3EEvPT_", false},
        {"void", "_Z2tkIfLi3EEvPT_", false},
        {"anon", "_ZN32_GLOBAL__N__4823dc77_4_n_cu_main4anonEPi", true},
        {"(anonymous namespace)::anon", "_ZN32_GLOBAL__N__4823dc77_4_n_cu_main4anonEPi", true},
        {"ns::tn", "_ZN2ns2tnIdEEvPNS_1VIT_EEPA4_S2_", true},
        {"ns::tn<double>", "_ZN2ns2tnIdEEvPNS_1VIT_EEPA4_S2_", true},
        {"tn<double>", "_ZN2ns2tnIdEEvPNS_1VIT_EEPA4_S2_", true},
        {"tn", "_ZN2ns2tnIdEEvPNS_1VIT_EEPA4_S2_", true},
        {"ns::*", "_ZN2ns2tnIdEEvPNS_1VIT_EEPA4_S2_", true},
        {"ns", "_ZN2ns2tnIdEEvPNS_1VIT_EEPA4_S2_", false},
        {"V*", "_ZN2ns2tnIdEEvPNS_1VIT_EEPA4_S2_", false},
        {"stat(int*)", "_Z4statPi", true},
        {"stat", "_Z4statPi", true},
        {"", "_Z4statPi", false},
        {"run", "_Z3runIZ4mainEUliE_EvT_", true},
        {"main", "_Z3runIZ4mainEUliE_EvT_", false},
        {"sort", "_ZN6thrust4sortIDTcl3fooEEEEvv", true}, /* an expression: not understood as a whole */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (mg_name_matches(cases[i].glob, cases[i].name) != cases[i].want)
            mg_test_fail(__FILE__, __LINE__, "%s against %s", cases[i].glob, cases[i].name);
}
