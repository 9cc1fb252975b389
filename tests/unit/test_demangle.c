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
        "main",          "", "_Z", "_ZN", "_Z3fo", "_Z1fS_", "_Z1fT_", "_Z1fIXsrE", "_Z99999999999999999999f", "_ZTV1A",
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
